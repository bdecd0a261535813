/** `npm run demo [-- --keep]`: hands the product's parts to the demo, and ends everything whichever way it ends. */

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connectClient } from '../client/connect.ts';
import { startMirror } from '../client/start.ts';
import { watchRun } from '../client/watch.ts';
import { Screen } from '../dev/demo/screen.ts';
import { type DemoTools, type MirrorClient, runDemo } from '../dev/demo.ts';
import { WORKER_ROLE } from '../dev/stack.ts';
import { stopOnSignal, UndoStack } from '../dev/undo-stack.ts';
import { TASK_QUEUE } from '../domain/messages.ts';
import { migrate } from '../journal/migrate.ts';

/** Often enough to look alive. */
const LOOK_EVERY_MS = 250;

const tools: DemoTools = {
  migrate: ({ ownerUrl }) => migrate({ ownerUrl, runtimeRole: WORKER_ROLE }),
  connect: connectMirrorClient,
};

async function connectMirrorClient(address: string): Promise<MirrorClient> {
  const temporal = await connectClient({ profile: null, address, namespace: null, taskQueue: TASK_QUEUE });
  return {
    async run(mirror, show) {
      const started = await startMirror(temporal, mirror);
      if (started.kind !== 'started') throw new Error(`a run of ${mirror} is under way already`);
      for await (const event of watchRun(temporal, started, {
        intervalMs: LOOK_EVERY_MS,
        answerWithinMs: 2_000,
      })) {
        if (event.kind === 'progress') {
          const { phase, counts, waiting, parked } = event.progress;
          // Nobody sits here to answer.
          if (parked !== null)
            throw new Error(`the run is parked: it would remove ${parked.removals} members`);
          show({ phase, counts, waiting: waiting?.code ?? null });
        }
        if (event.kind !== 'ended') continue;
        const { ending } = event;
        if (ending.kind === 'result' && ending.result.outcome === 'completed') return ending.result.counts;
        const why = ending.kind === 'failed' ? `${ending.type}: ${ending.message}` : JSON.stringify(ending);
        throw new Error(`the run did not complete: ${why}`);
      }
      throw new Error('the run was lost from sight');
    },
  };
}

/**
 * The demo's own server knows nothing of the namespace, profile, TLS or API key that this shell has for others. With
 * TEMPORAL_ADDRESS set it is that server which is meant, and all the rest with it.
 */
function forgetOtherServers(): void {
  if ((process.env.TEMPORAL_ADDRESS ?? '') !== '') return;
  for (const name of Object.keys(process.env)) if (name.startsWith('TEMPORAL_')) delete process.env[name];
  // A file that is not there is an empty one.
  process.env.TEMPORAL_CONFIG_FILE = join(projectFolder(), '.retl', 'demo', 'no-temporal-profiles.toml');
}

async function main(): Promise<number> {
  forgetOtherServers();
  const keep = process.argv.includes('--keep');
  const screen = new Screen(process.stdout);
  const undo = new UndoStack();
  let interrupted = false;
  stopOnSignal(async () => {
    interrupted = true;
    screen.close('Stopping …');
    await undo.run();
  });
  try {
    const isRight = await runDemo({ projectFolder: projectFolder(), tools, screen, defer: undo.defer });
    if (keep) await keepUp(screen);
    return isRight ? 0 : 1;
  } catch (error) {
    // Whatever breaks while everything is being stopped is no news.
    if (interrupted) return await new Promise<never>(() => undefined);
    screen.line();
    screen.line(`The demo failed: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  } finally {
    if (!interrupted) await undo.run();
  }
}

/** Where `.retl/` is: the folder of this checkout. */
function projectFolder(): string {
  return fileURLToPath(new URL('../../', import.meta.url));
}

async function keepUp(screen: Screen): Promise<never> {
  screen.line('Everything stays up; Ctrl-C stops it. To look around, in another terminal:');
  screen.line('  npm run retl -- status --project .retl/demo');
  setInterval(() => undefined, 60_000);
  return new Promise<never>(() => undefined);
}

process.exit(await main());
