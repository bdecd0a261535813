/** Bundles the workflows once, at build time, so that a worker starts without compiling anything. */

import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode } from '@temporalio/worker';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const { code } = await bundleWorkflowCode({ workflowsPath: here('./workflows/index.js') });
await writeFile(here('./workflow-bundle.js'), code);
