/**
 * The port of a project's PostgreSQL, kept beside its data. The address is part of what a target is, so that on another
 * port all that was mirrored into this server would be new to the journal: a later start insists on the first one's.
 */

import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { freePortFrom, isFree } from './ports.ts';
import { commandOf, listenerOn } from './processes.ts';

const File = z.object({ postgres: z.int().min(1).max(65_535) });

/** The kept port is another program's now. */
export class PortTaken extends Error {
  override readonly name = 'PortTaken';
  constructor(
    readonly port: number,
    readonly holder: string,
    /** Where the port is kept. */
    readonly file: string,
  ) {
    super(
      `Port ${port}, where this project’s PostgreSQL has been from its first start on, is taken by ${holder}. ` +
        'On another port its tables would be new targets to the journal.',
    );
  }
}

/**
 * Below the ports that systems give to outgoing connections; each folder begins its search somewhere else, so that two
 * projects seldom meet, also when the second was made while the first one was stopped.
 */
const FIRST_PORT = 15_432;
const SPREAD = 2_000;

/** The kept port; where none is kept, a free one. @throws PortTaken */
export async function portFor(dataDir: string): Promise<number> {
  const file = fileIn(dataDir);
  const kept = await keptIn(file);
  if (kept === null)
    return freePortFrom(FIRST_PORT + (createHash('sha256').update(dataDir).digest().readUInt32BE() % SPREAD));
  if (await isFree(kept)) return kept;
  throw new PortTaken(kept, await holderOf(kept), file);
}

export async function keepPort(dataDir: string, postgres: number): Promise<void> {
  await writeFile(fileIn(dataDir), `${JSON.stringify({ postgres })}\n`);
}

function fileIn(dataDir: string): string {
  return join(dataDir, 'ports.json');
}

/** `null` where there is none, or it was cut short while it was written. */
async function keptIn(file: string): Promise<number | null> {
  try {
    return File.parse(JSON.parse(await readFile(file, 'utf8'))).postgres;
  } catch {
    return null;
  }
}

async function holderOf(port: number): Promise<string> {
  const pid = await listenerOn(port);
  if (pid === null) return 'another program';
  // What it was started with may hold secrets; the program alone says enough, and PostgreSQL's folder whose it is.
  const [program = '', ...args] = (await commandOf(pid)).split(' ');
  const data = args[args.indexOf('-D') + 1];
  return `process ${pid} (${args.includes('-D') && data !== undefined ? `${program} -D ${data}` : program})`;
}
