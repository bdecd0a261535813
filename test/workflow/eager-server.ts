/** A real development server that suggests to continue as new after some tens of events, in place of thousands. */

import { TestWorkflowEnvironment } from '@temporalio/testing';
import { cacheFolder } from '../../src/dev/cache-folder.ts';
import { spawnGuarded } from '../../src/dev/guarded-child.ts';
import { freePort } from '../../src/dev/ports.ts';
import { findTemporalCli } from '../../src/dev/temporal-cli.ts';

const PROJECT = new URL('../..', import.meta.url).pathname;
export interface EagerServer {
  readonly env: TestWorkflowEnvironment;
  readonly address: string;
  stop(): Promise<void>;
}

/** @param events after which it suggests to continue as new. */
export async function startEagerServer(events: number): Promise<EagerServer> {
  const cli = await findTemporalCli(cacheFolder(PROJECT), () => undefined);
  const port = await freePort();
  const limit = `limit.historyCount.suggestContinueAsNew=${events}`;
  const flags = ['--ip', '127.0.0.1', '--port', String(port), '--headless', '--log-level', 'error'];
  const attributes = ['RetlMirror', 'RetlPhase', 'RetlOutcome'].flatMap((a) => [
    '--search-attribute',
    `${a}=Keyword`,
  ]);
  const server = await spawnGuarded(
    cli,
    ['server', 'start-dev', ...flags, ...attributes, '--dynamic-config-value', limit],
    {
      spawn: { stdio: 'ignore' },
      stopSignal: 'SIGTERM',
      stopWithinMs: 10_000,
    },
  );
  const address = `127.0.0.1:${port}`;
  const env = await connected(address);
  return {
    env,
    address,
    async stop() {
      await env.teardown();
      await server.stop();
    },
  };
}

/** The namespace is made a moment after the port opens. */
async function connected(address: string): Promise<TestWorkflowEnvironment> {
  for (let tries = 1; ; tries += 1) {
    try {
      const env = await TestWorkflowEnvironment.createFromExistingServer({ address });
      await env.connection.workflowService.describeNamespace({ namespace: 'default' });
      return env;
    } catch (error) {
      if (tries === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}
