/** `retl check [mirror]…`: finds out what can be found out before a run, and changes nothing. */

import type { Command } from 'commander';
import { z } from 'zod';
import type { CheckLine } from '../../domain/check.ts';
import { type Invocation, newCommand } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { Refusal } from '../failures.ts';
import type { Output } from '../output.ts';
import { counted, showProblem } from '../problems-view.ts';
import { addSelection, selectMirrors } from '../selection.ts';
import { askWorker, NOTHING_CHANGED } from '../worker-answers.ts';

export function checkCommand(): Command {
  const command = newCommand(
    {
      name: 'check',
      summary: 'check configuration, source, mapping and destination',
      description:
        'Checks the configuration with every error at once, that every secret is there, the source’s query without reading ' +
        'a row, the mapping against its columns, and the rights at the destination without writing; of the whole project also ' +
        'where indexes live and checkpoints are kept. Changes nothing.',
      examples: [
        ['retl check', 'the whole project'],
        ['retl check vip-customers', 'one mirror'],
        ['retl check "vip-*"', 'several, by a pattern'],
        ['retl check --json', 'one JSON text per finding'],
      ],
    },
    check,
  );
  return addSelection(command);
}

const subject = z.enum([
  'configuration',
  'journal',
  'temporal',
  'source',
  'mapping',
  'destination',
  'artifacts',
  'index',
]);
const line: z.ZodType<CheckLine> = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('problem'),
    mirror: z.string().nullable(),
    subject,
    code: z.string(),
    place: z.string().nullable(),
    path: z.string().nullable(),
    message: z.string(),
    remedy: z.string(),
  }),
  z.object({ kind: z.literal('hint'), mirror: z.string().nullable(), subject, message: z.string() }),
  z.object({ kind: z.literal('passed'), mirror: z.string().nullable(), subject, facts: z.string() }),
]);

async function check(invocation: Invocation): Promise<ExitCode> {
  const { output, project } = invocation;
  const chosen = (await selectMirrors(invocation))?.mirrors ?? [];
  const counts = { passed: 0, problem: 0, hint: 0 };
  // The worker checks: it alone may load the systems, and it sees what a run would see.
  const args = ['--project', project.dir, '--check', ...chosen];
  const exit = await askWorker({ args, leaves: NOTHING_CHANGED }, line, (found) => {
    counts[found.kind] += 1;
    show(output, found);
  });
  if (counts.passed + counts.problem === 0)
    throw new Refusal(
      exit === EXIT.ok ? EXIT.failure : exit,
      'check-incomplete',
      'The worker that checks has ended without a finding.',
      'What it wrote above says why; `retl worker` starts the same program.',
    );
  output.line(
    counts.problem === 0
      ? output.style('green', 'Everything that can be checked beforehand is in order.')
      : output.style('red', `${counted(counts.problem, 'problem')}; nothing was started.`),
  );
  return counts.problem === 0 ? exit : EXIT.usage;
}

function show(output: Output, found: CheckLine): void {
  output.event(found);
  const about = [found.mirror, found.subject].filter((part) => part !== null).join(' ');
  if (found.kind === 'passed') {
    output.line(`${output.style('green', 'ok')}    ${output.style('bold', about)} ${found.facts}`);
    return;
  }
  if (found.kind === 'hint') {
    output.line(`${output.style('yellow', 'note')}  ${output.style('bold', about)} ${found.message}`);
    return;
  }
  const mark = output.style('red', 'error');
  const place = found.place ?? about;
  // What is wrong with a place of a file is told in words; with a system, by a code, too.
  const path =
    found.place === null ? [found.path, found.code].filter(Boolean).join(' ') : (found.path ?? found.code);
  showProblem(output, { mark, ...found, place, path });
}
