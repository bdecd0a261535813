/** `retl index forget <index>`: lets an index go that was taken out of retl.yaml. */

import type { Command } from 'commander';
import { RetlError } from '../../domain/errors.ts';
import { INDEX_NAME } from '../../domain/index-messages.ts';
import type { IndexSettings } from '../../domain/settings.ts';
import { type Invocation, newCommand } from '../command.ts';
import { confirm, YES_HELP } from '../confirm.ts';
import { readSettings } from '../environment.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { Refusal } from '../failures.ts';
import { indexWork } from '../index-work.ts';
import { counted } from '../problems-view.ts';
import { withTemporal } from '../temporal.ts';

export function indexForgetCommand(): Command {
  return newCommand(
    {
      name: 'forget',
      summary: 'let an index go that was taken out of retl.yaml',
      description:
        'Stops its workflow, lets the log be compacted past it again, and drops its rows and its view where they live in the ' +
        'journal’s database, schema `retl_index` unless --schema says otherwise. Elsewhere its rows are left: drop them there. Its ' +
        'checkpoints stay in the journal, for audit.',
      examples: [['retl index forget people', 'shows what goes, and asks']],
    },
    forget,
  )
    .argument('<index>', 'an index that retl.yaml had')
    .option('--schema <name>', 'the schema of the journal’s database that it lives in', 'retl_index')
    .option('--yes', YES_HELP);
}

async function forget(invocation: Invocation): Promise<ExitCode> {
  const { output, project, args, options } = invocation;
  const [index = ''] = args;
  if (!INDEX_NAME.test(index)) throw new RetlError('index.unknown', { index: index.slice(0, 63) });
  const { indexes } = await readSettings(project);
  const configured = indexes.find(({ name }) => name === index);
  if (configured !== undefined)
    throw new Refusal(
      EXIT.usage,
      'still-configured',
      `The index ${index} is one of retl.yaml.`,
      `Take it out of \`indexes\` first, for all workers; \`retl index rebuild\` builds it anew.${leftElsewhere(configured)}`,
    );
  const schema = String(options.schema);
  await confirm(
    invocation,
    `This drops the rows of the index ${index} in ${schema}, and its hold on the log`,
    'yes',
  );
  const { signalIndex } = await import('../../client/indexes.ts');
  const stopped = await withTemporal(project, (temporal) => signalIndex(temporal, index, 'stop')).then(
    ({ kind }) => kind === 'sent',
    () => null,
  );
  if (stopped === null)
    output.note(
      'Temporal could not be asked: where the workflow of the index runs, it is refused from now on.',
    );
  const [found] = await indexWork(project, 'forget', index, schema);
  if (found?.kind !== 'forgotten') throw new Error('the process has not said what it let go');
  if (found.builds === 0 && found.held === null && stopped !== true)
    throw new Refusal(
      EXIT.refused,
      'nothing-to-forget',
      `There is nothing of the name ${index}: no build in the schema ${schema} of the journal’s database, and no hold on the log.`,
      'Check the name, and `--schema`. What lives elsewhere is left there: docs/indexes.md says what to drop.',
    );
  const { kind: _, ...document } = found;
  output.document({ ...document, stopped: stopped === true });
  const held =
    found.held === null ? 'the log was not held back' : `the log was held back from ${found.held} on`;
  if (found.builds === 0)
    output.note(
      `No build of ${index} was in the schema ${schema} of the journal’s database. What lives elsewhere is left there: docs/indexes.md says what to drop.`,
    );
  output.line(`${index}: forgotten; ${counted(found.builds, 'build')} dropped, ${held}`);
  return EXIT.ok;
}

/** Where its rows are that this command cannot reach: once it is out of retl.yaml, nobody can say it any more. */
function leftElsewhere({ name, schema, url, engine }: IndexSettings): string {
  if (engine !== null) {
    const { prefix } = engine.options;
    const alias = `${typeof prefix === 'string' ? prefix : ''}${name}`;
    return ` Its builds in ${engine.system} are left for you to delete after that: the indexes ${alias}-v*-b*, to which the alias ${alias} leads.`;
  }
  if (url === null) return '';
  return ` Its rows are in the database of its \`url\`, schema ${schema}, and left for you to drop after that.`;
}
