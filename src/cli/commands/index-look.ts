/** `retl index status|verify|checkpoints|show`: how indexes stand, beside the log and in the journal's registry. */

import type { Command } from 'commander';
import { RetlError } from '../../domain/errors.ts';
import { type Invocation, newCommand } from '../command.ts';
import { showCompared } from '../compared-view.ts';
import { EXIT, type ExitCode, worstExit } from '../exit-codes.ts';
import { failureOf } from '../failures.ts';
import {
  type IndexAnswer,
  type IndexFindings,
  indexesOf,
  indexFindings,
  indexOf,
  indexWork,
  referenceOf,
} from '../index-work.ts';
import { indexWorkflows, noteWorkflows, workflowWords } from '../index-workflow.ts';

export function indexStatusCommand(): Command {
  return newCommand(
    {
      name: 'status',
      summary: 'show how far each index is, and how far behind the log',
      description:
        'Shows the builds of each index, the checkpoint each stands at, and its lag: positions of the log that it has not ' +
        'processed, and the age of the first of them; and what its workflow is about, where Temporal can be asked.',
      examples: [
        ['retl index status', 'of every index'],
        ['retl index status people --json', 'of one, as a JSON document'],
      ],
    },
    status,
  ).argument('[index]', 'an index of retl.yaml');
}

async function status(invocation: Invocation): Promise<ExitCode> {
  const { output, project } = invocation;
  const names = await indexesOf(invocation);
  if (names.length === 0) output.note('No index is configured: `indexes:` of retl.yaml is where they stand.');
  const nothing: IndexFindings = { answers: [], refusals: [] };
  const [found, workflows] = await Promise.all([
    names.length === 0 ? nothing : indexFindings(project, 'status', ...invocation.args),
    indexWorkflows(project, names),
  ]);
  const indexes = found.answers.flatMap((one) => (one.kind === 'status' ? [one] : []));
  const away = found.refusals.map((error) => ({ index: error.details.index, failure: failureOf(error) }));
  for (const [n, { index }] of away.entries()) if (index === undefined) throw found.refusals[n];
  const refused = [...away, ...indexes.flatMap(refusedBuilds)];
  output.document({
    indexes: indexes.map(({ kind: _, ...rest }) => ({ ...rest, workflow: workflows(rest.index) })),
    refused: refused.map(({ index, failure }) => ({
      ...{ index, ...failure.document },
      workflow: workflows(`${index}`),
    })),
  });
  const rows = names.flatMap((name) => [
    ...indexes.filter(({ index }) => index === name).flatMap(rowsOf),
    ...away
      .filter(({ index }) => index === name)
      .map(({ failure }) => [name, failure.document.code, '', '', '', '']),
  ]);
  const told = rows.map((row) => [...row, workflowWords(workflows(row[0] ?? ''))]);
  const head = ['INDEX', 'STATE', 'BUILD', 'POSITION', 'ROWS', 'LAG', 'WORKFLOW'];
  if (rows.length > 0) output.table([head, ...told]);
  for (const { failure } of refused) failure.write(output);
  const alike = (name: string) =>
    refused.some(({ index, failure }) => index === name && failure.document.code === workflows(name).code);
  noteWorkflows(
    output,
    names.filter((name) => !alike(name)),
    workflows,
  );
  return worstExit(refused.map(({ failure }) => failure.exit));
}

type Status = Extract<IndexAnswer, { readonly kind: 'status' }>;

/** Builds that may not go on: readers have the live one as it is, until a person has looked. */
function refusedBuilds({ index, builds }: Status) {
  return builds.flatMap(({ build, refused }) => {
    if (refused === null) return [];
    const details = { index, build, ...refused.details };
    return [{ index, failure: failureOf(new RetlError(refused.code, details)) }];
  });
}

function rowsOf({ index, head, builds }: Status): string[][] {
  if (builds.length === 0) return [[index, 'not built', '', `0 of ${head}`, '', '']];
  return builds.map(({ state, build, position, goal, rows, lag, refused }) => [
    index,
    goal === null ? state : `${state}, rolled back to ${goal}`,
    build,
    `${position ?? 'snapshot'} of ${head}`,
    rows,
    lag === null ? (refused?.code ?? '') : `${lag.positions} positions, ${lag.ms} ms`,
  ]);
}

export function indexVerifyCommand(): Command {
  return newCommand(
    {
      name: 'verify',
      summary: 'compare an index with the log, row by row',
      description:
        'Replays the log into a scratch copy, compares it with the live build, looks whether that is what readers see, and ' +
        'holds every checkpoint that was kept to its artifact and to the log. Changes nothing.',
      examples: [['retl index verify people', 'exit code 0: they are the same']],
    },
    verify,
  ).argument('<index>', 'an index of retl.yaml');
}

async function verify(invocation: Invocation): Promise<ExitCode> {
  const { output, project } = invocation;
  const { answers, refusals } = await indexFindings(project, 'verify', await indexOf(invocation));
  const audited = answers.find((one) => one.kind === 'audited');
  const compared = answers.find((one) => one.kind === 'verified') ?? null;
  const [refused] = refusals.map(failureOf);
  if (audited === undefined || (compared === null && refused === undefined)) {
    for (const refusal of refusals) throw refusal;
    throw new Error('the process has said nothing of what it compared');
  }
  const error = refused === undefined ? {} : { error: refused.document };
  const { kind: _, ...document } = { ...audited, ...compared };
  output.document({ ...document, ...error });
  const isSame = compared !== null && showCompared(output, compared);
  for (const fault of audited.faults)
    output.line(`${output.style('red', fault.code)} ${fault.position} ${fault.reference}`);
  output.line(`${audited.checkpoints} checkpoints, ${audited.faults.length} with a fault.`);
  refused?.write(output);
  if (refused !== undefined) return refused.exit;
  return isSame && audited.faults.length === 0 ? EXIT.ok : EXIT.failure;
}

export function indexCheckpointsCommand(): Command {
  return newCommand(
    {
      name: 'checkpoints',
      summary: 'list the checkpoints that were kept of an index',
      description:
        'Lists every checkpoint that the journal keeps of the index, those of the newest build first.',
      examples: [
        ['retl index checkpoints people', 'each may be rolled back to while the log reaches that far'],
      ],
    },
    checkpoints,
  ).argument('<index>', 'an index of retl.yaml');
}

async function checkpoints(invocation: Invocation): Promise<ExitCode> {
  const { output, project } = invocation;
  const found = await indexWork(project, 'checkpoints', await indexOf(invocation));
  const kept = found.flatMap((one) => (one.kind === 'checkpoint' ? [one] : []));
  output.document({ checkpoints: kept.map(({ kind: _, ...rest }) => rest) });
  const rows = kept.map(({ build, position, recordedAt, reference }) => [
    build,
    position,
    recordedAt,
    reference,
  ]);
  output.table([['BUILD', 'POSITION', 'RECORDED', 'CHECKPOINT'], ...rows]);
  return EXIT.ok;
}

export function indexShowCommand(): Command {
  return newCommand(
    {
      name: 'show',
      summary: 'show what a checkpoint says',
      description:
        'Reads the artifact of a checkpoint, verifies it, and shows its fields (docs/checkpoint-format.md).',
      examples: [['retl index show sha256:…', 'as `retl index checkpoints` names it']],
    },
    show,
  ).argument('<checkpoint>', 'reference of a checkpoint');
}

async function show({ output, project, args }: Invocation): Promise<ExitCode> {
  const [found] = await indexWork(project, 'show', referenceOf(args[0]));
  if (found?.kind !== 'shown') throw new Error('the process has shown nothing');
  output.document({ reference: found.reference, checkpoint: found.checkpoint });
  for (const [field, value] of Object.entries(found.checkpoint))
    output.line(`${field.padEnd(26)} ${value === null ? output.style('dim', 'absent') : value}`);
  return EXIT.ok;
}
