/**
 * PostgreSQL refuses to run as root. Where the developer is root (containers, CI), it runs as an existing system
 * user instead; no user is ever created. A checkout that this user cannot enter (below /root, mode 0700) is made readable to
 * that one process by a capability, never by changing modes.
 */

import { execFileSync } from 'node:child_process';
import { chownSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

export interface Identity {
  readonly uid: number;
  readonly gid: number;
}

/** How to start a server program: a prefix for the command line, and the ids for `spawn`. */
export interface Launch {
  readonly prefix: readonly string[];
  readonly identity: Identity | null;
}

const CANDIDATES = ['postgres', 'nobody'];

/** The system user for the server; `null` where the developer is not root and no change is needed. */
export function serverIdentity(): Identity | null {
  if (process.getuid?.() !== 0) return null;
  const users = new Map<string, Identity>();
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const [name, , uid, gid] = line.split(':');
    if (name !== undefined && uid !== undefined && gid !== undefined) {
      users.set(name, { uid: Number(uid), gid: Number(gid) });
    }
  }
  const found = CANDIDATES.map((name) => users.get(name)).find((user) => user !== undefined);
  if (found !== undefined) return found;
  throw new Error(
    'PostgreSQL does not run as root, and neither user "postgres" nor "nobody" exists here. ' +
      'Run this command as an ordinary user.',
  );
}

/** Gives the folder to the server's user. */
export function handOver(folder: string, identity: Identity | null): void {
  if (identity !== null) chownSync(folder, identity.uid, identity.gid);
}

/** How to run a program that needs to reach `paths`. */
export function launchFor(identity: Identity | null, paths: readonly string[]): Launch {
  if (identity === null) return { prefix: [], identity: null };
  const closed = paths.map((path) => closedFolder(path, identity)).find((folder) => folder !== null);
  if (closed === undefined || closed === null) return { prefix: [], identity };
  const prefix = [
    'setpriv',
    `--reuid=${identity.uid}`,
    `--regid=${identity.gid}`,
    '--clear-groups',
    // Without it access(2), by which PostgreSQL checks its own programs, overlooks the capability.
    '--securebits=+no_setuid_fixup',
    '--inh-caps=+dac_override',
    '--ambient-caps=+dac_override',
    '--',
  ];
  if (works(prefix)) return { prefix, identity: null };
  throw new Error(
    `PostgreSQL does not run as root, and user ${identity.uid}, which it would run as, cannot enter ${closed}. ` +
      'Run this command as an ordinary user, or move the project to a folder that others may enter.',
  );
}

/** The first folder on the way to `path` that the user may not enter. */
function closedFolder(path: string, identity: Identity): string | null {
  const parent = dirname(path);
  const above = parent === path ? null : closedFolder(parent, identity);
  if (above !== null) return above;
  const stat = statSync(path);
  if (!stat.isDirectory()) return null;
  const bit = stat.uid === identity.uid ? 0o100 : stat.gid === identity.gid ? 0o010 : 0o001;
  return (stat.mode & bit) === 0 ? path : null;
}

function works(prefix: readonly string[]): boolean {
  const [command, ...args] = prefix;
  if (command === undefined) return false;
  try {
    execFileSync(command, [...args, 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
