/**
 * Reads mirrors as a run would, with the systems' own schemas, and tells what is wrong with their files: `retl run` asks before
 * it starts anything (design.md section 10, invalid config). It loads neither Temporal nor the journal, and looks at no secret:
 * those are where the worker runs.
 *
 *   worker-load.ts --project <folder> <mirror>…   prints {"problems": […]}
 */

import { parseArgs } from 'node:util';
import { loadMirror } from './config/load.ts';
import { type Problem, problemText, sortProblems } from './config/problem.ts';
import { DESTINATIONS, SOURCES } from './worker-setup.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { project: { type: 'string', default: '.' } },
});

const types = { sources: SOURCES, destinations: DESTINATIONS };
/** Of retl.yaml each mirror tells the same: once is enough. */
const found = new Map<string, Problem>();
for (const mirror of positionals) {
  const loaded = await loadMirror(values.project, mirror, types, null);
  if (loaded.kind === 'invalid')
    for (const problem of loaded.problems) found.set(problemText(problem), problem);
}
process.stdout.write(`${JSON.stringify({ problems: sortProblems([...found.values()]) })}\n`);
