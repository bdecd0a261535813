/** `retl index forget <index>`: lets an index go that is retired, or was taken out of retl.yaml. */

import type { Command } from 'commander';
import { RetlError } from '../../domain/errors.ts';
import { INDEX_NAME } from '../../domain/index-messages.ts';
import type { IndexSettings } from '../../domain/settings.ts';
import { type Invocation, newCommand } from '../command.ts';
import { confirm, YES_HELP } from '../confirm.ts';
import { readSettings } from '../environment.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { misused, Refusal } from '../failures.ts';
import { indexWork } from '../index-work.ts';
import { counted } from '../problems-view.ts';
import { withTemporal } from '../temporal.ts';

const HOME = 'retl_index';

export function indexForgetCommand(): Command {
  return newCommand(
    {
      name: 'forget',
      summary: 'let an index go that is retired, or was taken out of retl.yaml',
      description:
        'Stops its workflow, drops its rows, and its view or alias, and lets the log be compacted past it again. With `retired: ' +
        'true` in retl.yaml it goes where it lives, a search engine or another database; one that is not in retl.yaml any more ' +
        'is looked for in the journal’s database. Its checkpoints stay in the journal, for audit.',
      examples: [['retl index forget people', 'shows what goes, and asks']],
    },
    forget,
  )
    .argument('<index>', 'an index that retl.yaml had, or has with `retired: true`')
    .option(
      '--schema <name>',
      `the schema of the journal’s database that it lived in, where retl.yaml does not say it any more (default: ${HOME})`,
    )
    .option('--yes', YES_HELP);
}

async function forget(invocation: Invocation): Promise<ExitCode> {
  const { output, project, options } = invocation;
  const { index, retired } = await indexToForget(invocation);
  const schema = String(options.schema ?? HOME);
  const place = placeOf(retired, schema);
  await confirm(
    invocation,
    `This drops the rows of the index ${index} in ${place}, and its hold on the log`,
    'yes',
  );
  const stopped = await stop(invocation, index);
  const [found] = await indexWork(project, 'forget', index, schema);
  if (found?.kind !== 'forgotten') throw new Error('the process has not said what it let go');
  const { kind: _, ...document } = found;
  const { builds, foreign, held } = document;
  if (builds === 0 && held === null && !stopped) throw nothingThere(index, place, foreign);
  output.document({ ...document, stopped });
  if (builds === 0) output.note(`No build of ${index} was in ${place}.${elsewhere(retired)}`);
  if (foreign > 0) output.note(`${counted(foreign, 'build')} of another journal’s in ${place} stayed there.`);
  const log = held === null ? 'the log was not held back' : `the log was held back from ${held} on`;
  output.line(`${index}: forgotten; ${counted(builds, 'build')} dropped, ${log}`);
  if (retired !== null) output.note(`It can be taken out of retl.yaml now.`);
  return EXIT.ok;
}

interface ToForget {
  readonly index: string;
  /** `null`: retl.yaml does not know it. */
  readonly retired: IndexSettings | null;
}

/** @throws RetlError `index.unknown`; Refusal */
async function indexToForget({ project, args, options }: Invocation): Promise<ToForget> {
  const [index = ''] = args;
  if (!INDEX_NAME.test(index)) throw new RetlError('index.unknown', { index: index.slice(0, 63) });
  const { indexes, retiredIndexes } = await readSettings(project);
  if (indexes.some(({ name }) => name === index))
    throw new Refusal(
      EXIT.usage,
      'still-configured',
      `The index ${index} is one of retl.yaml.`,
      'Write `retired: true` beside its `kind` first, for all workers; `retl index rebuild` builds it anew.',
    );
  const retired = retiredIndexes.find(({ name }) => name === index) ?? null;
  if (retired !== null && options.schema !== undefined)
    throw misused('index forget', `retl.yaml says where ${index} lives: leave out \`--schema\`.`);
  return { index, retired };
}

/** In words; a URL may hold a password. */
function placeOf(retired: IndexSettings | null, schema: string): string {
  if (retired === null) return `the schema ${schema} of the journal’s database`;
  if (retired.engine !== null) {
    const { prefix } = retired.engine.options;
    const under = typeof prefix === 'string' ? `, prefix ${prefix}` : '';
    return `the ${retired.engine.system} of its \`url\`${under}`;
  }
  return `the schema ${retired.schema} of ${retired.url === null ? 'the journal’s database' : 'the database of its `url`'}`;
}

/** Whether a workflow was told. */
async function stop({ output, project }: Invocation, index: string): Promise<boolean> {
  const { signalIndex } = await import('../../client/indexes.ts');
  try {
    return (await withTemporal(project, (temporal) => signalIndex(temporal, index, 'stop'))).kind === 'sent';
  } catch {
    output.note(
      'Temporal could not be asked: where the workflow of the index runs, it is refused from now on.',
    );
    return false;
  }
}

function nothingThere(index: string, place: string, foreign: number): Refusal {
  const others =
    foreign === 0 ? '' : ` ${counted(foreign, 'build')} of another journal’s are there, and stay.`;
  return new Refusal(
    EXIT.refused,
    'nothing-to-forget',
    `There is nothing of the name ${index}: no build in ${place}, and no hold on the log.${others}`,
    'Check the name, and `--schema`. What lived in a search engine or another database is found with `retired: true` in retl.yaml.',
  );
}

function elsewhere(retired: IndexSettings | null): string {
  return retired === null
    ? ' What lived in a search engine or another database is found with `retired: true` in retl.yaml.'
    : '';
}
