/** The worker of `retl dev`: started anew when retl.yaml or .env changes. */

import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PROJECT_FILE } from '../config/load-base.ts';
import type { GuardedChild } from '../dev/guarded-child.ts';
import { currentEnvironment, type Project } from './environment.ts';
import type { Output } from './output.ts';
import { isReady, jsonLines, workerCommandLine } from './worker-process.ts';

const LOOK_EVERY_MS = 1_000;
const STOP_WITHIN_MS = 20_000;

export class DevWorker {
  constructor(
    private readonly output: Output,
    private readonly project: Project,
    private readonly environment: { readonly [name: string]: string },
  ) {}

  /** Keeps a worker running until `stopped` resolves, then stops it in order. */
  async runUntil(stopped: Promise<unknown>): Promise<void> {
    const end = stopped.then(() => 'stopped' as const);
    for (;;) {
      const seen = await fingerprint(this.project);
      const child = await this.start();
      const changed = this.change(seen);
      const first = await Promise.race([end, changed.seen, child.exited.then(() => 'ended' as const)]);
      if (first === 'ended')
        this.output.note('The worker has ended; it starts again when retl.yaml or .env changes.');
      const next = first === 'ended' ? await Promise.race([end, changed.seen]) : first;
      changed.stop();
      await child.stop();
      if (next === 'stopped') return;
      this.output.note('retl.yaml or .env has changed; the worker starts anew.');
    }
  }

  private async start(): Promise<GuardedChild> {
    const { spawnGuarded } = await import('../dev/guarded-child.ts');
    const env = { ...(await currentEnvironment(this.project)), ...this.environment };
    const child = await spawnGuarded(process.execPath, workerCommandLine(['--project', this.project.dir]), {
      spawn: { env, stdio: ['ignore', 'pipe', 'inherit'] },
      stopSignal: 'SIGTERM',
      stopWithinMs: STOP_WITHIN_MS,
    });
    this.tellReady(child).catch(() => undefined);
    return child;
  }

  private async tellReady(child: GuardedChild): Promise<void> {
    for await (const line of jsonLines(child.process)) {
      if (!isReady(line)) continue;
      this.output.event({ event: 'worker-ready' });
      this.output.line('The worker is ready.');
    }
  }

  private change(seen: string): { readonly seen: Promise<'changed'>; stop(): void } {
    let looking = true;
    const look = async (): Promise<'changed'> => {
      while (looking && (await fingerprint(this.project)) === seen) await sleep(LOOK_EVERY_MS);
      return 'changed';
    };
    return {
      seen: look(),
      stop: () => {
        looking = false;
      },
    };
  }
}

/** Size and time of what the worker reads once, at its start; mirrors are read anew for every run. */
async function fingerprint({ dir, envFiles }: Project): Promise<string> {
  const files = await Promise.all(
    [PROJECT_FILE, ...envFiles].map((name) => stat(join(dir, name)).catch(() => null)),
  );
  return files.map((found) => `${found?.size ?? 0}:${found?.mtimeMs ?? 0}`).join(' ');
}
