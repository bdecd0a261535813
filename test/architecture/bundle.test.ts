import { join } from 'node:path';
import { bundleWorkflowCode, type WorkflowBundle } from '@temporalio/worker';
import { beforeAll, expect, test } from 'vitest';
import { MIRROR_WORKFLOW } from '../../src/domain/messages.ts';
import { ROOT } from './sources.ts';

let bundle: WorkflowBundle;
beforeAll(async () => {
  const quiet = (): void => undefined;
  bundle = await bundleWorkflowCode({
    workflowsPath: join(ROOT, 'src', 'workflows', 'index.ts'),
    logger: { log: quiet, trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet },
  });
});

test('the workflows bundle for the sandbox, and the mirror workflow is in it', () => {
  expect(bundle.code).toContain('src/workflows/index.ts');
  expect(bundle.code).toMatch(new RegExp(`\\b${MIRROR_WORKFLOW}\\b`));
});

test('nothing but workflows and the domain gets into the sandbox', () => {
  const own = [...bundle.code.matchAll(/["']\.\/src\/(?<path>[\w./-]+\.ts)["']/g)].map(
    (match) => match.groups?.path,
  );
  expect(own.length).toBeGreaterThan(2);
  expect(own.filter((path) => path === undefined || !/^(?:workflows|domain)\//.test(path))).toEqual([]);
  expect(bundle.code).not.toMatch(/node_modules\/(?:pg|zod|yaml|commander)\//);
});
