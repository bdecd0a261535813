/** What can be found out about a mirror before a run, without writing anything anywhere: used by `retl check`. */

import type { Writer } from '../destinations/port.ts';
import type { CheckLine, CheckSubject } from '../domain/check.ts';
import { detailsInWords, ERROR_CODES, RetlError } from '../domain/errors.ts';
import { compileMapping } from '../domain/mapping.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import type { Column } from '../domain/source-row.ts';
import { JournalError } from '../journal/errors.ts';
import { sha256Hex } from '../planning/hash.ts';
import { bindDestination, bindSource } from './binding.ts';
import type { Dependencies } from './deps.ts';
import { lookingContext } from './looking.ts';

type Checker = Pick<Dependencies, 'sources' | 'destinations' | 'configuration' | 'logger'>;

/**
 * Source, mapping and destination of one mirror.
 * @param isKnown whether the journal knows what the target held before the first run.
 */
export async function* checkMirror(
  deps: Checker,
  settings: MirrorSettings,
  isKnown: boolean,
): AsyncGenerator<CheckLine, void> {
  const { mirror } = settings;
  const columns: { found?: readonly Column[] } = {};
  yield* attempt(mirror, 'source', async () => {
    const source = bindSource(deps, settings);
    const signal = AbortSignal.timeout(60_000);
    columns.found = await source.adapter.describe(source.connection, settings.source.query, signal);
    return `${columns.found.length} columns: ${columns.found.map((c) => `${c.name} ${c.typeName}`).join(', ')}`;
  });
  const { found } = columns;
  if (found !== undefined) {
    yield* attempt(mirror, 'mapping', async () => {
      if (settings.mapping.kind === 'module') {
        await deps.configuration.projection(settings.mapping);
        return 'the mapping’s module loads';
      }
      compileMapping(settings.mapping.members, settings.source.key, found, sha256Hex);
      return `key ${settings.source.key.join(', ')}; ${settings.mapping.members.length} member rule(s)`;
    });
  }
  yield* checkDestination(deps, settings, isKnown);
}

async function* checkDestination(
  deps: Checker,
  settings: MirrorSettings,
  isKnown: boolean,
): AsyncGenerator<CheckLine, void> {
  const { mirror } = settings;
  const problems: CheckLine[] = [];
  const hints: CheckLine[] = [];
  for await (const line of attempt(mirror, 'destination', async () => {
    const bound = bindDestination(deps, settings);
    const writer = await bound.adapter.open(
      bound.connection,
      bound.options,
      lookingContext(deps, settings, AbortSignal.timeout(60_000)),
    );
    try {
      for (const p of await writer.preflight()) {
        const { code, message, remedy } = p;
        problems.push({
          kind: 'problem',
          mirror,
          subject: 'destination',
          code,
          place: null,
          path: null,
          message,
          remedy,
        });
      }
      if (problems.length === 0 && !isKnown) problems.push(...(await baselineProblems(writer, settings)));
    } finally {
      await writer.close();
    }
    for (const message of bound.adapter.hints?.(bound.options) ?? [])
      hints.push({ kind: 'hint', mirror, subject: 'destination', message });
    return `${bound.adapter.type}: reachable, and ready to be written`;
  })) {
    if (line.kind === 'problem' || problems.length === 0) yield line;
  }
  yield* problems;
  yield* hints;
}

/** What the first run of a target would stumble over. */
async function baselineProblems(writer: Writer, settings: MirrorSettings): Promise<readonly CheckLine[]> {
  // What a tracked target holds is imported, not looked at.
  if (settings.baseline.attested !== null || settings.baseline.kind === 'tracked') return [];
  const { kind } = await writer.checkEmpty();
  if (kind !== 'cannot-look') return [];
  const error = new RetlError('destination.baseline-unknown', { mirror: settings.mirror });
  return [problemOf(settings.mirror, 'destination', error)];
}

const REACH =
  'Check the URL of `journal` in retl.yaml, the database’s name, the role and its password, and the network.';

/** One finding: what `work` says, or the error it throws, in this project's own words. */
export async function* attempt(
  mirror: string | null,
  subject: CheckSubject,
  work: () => Promise<string>,
  path: string | null = null,
): AsyncGenerator<CheckLine, void> {
  try {
    yield { kind: 'passed', mirror, subject, facts: await work() };
  } catch (error) {
    yield problemOf(mirror, subject, error, path);
  }
}

/** @param path of what it is about in retl.yaml */
export function problemOf(
  mirror: string | null,
  subject: CheckSubject,
  error: unknown,
  path: string | null = null,
): CheckLine {
  const base = { kind: 'problem', mirror, subject, place: null, path } as const;
  if (error instanceof RetlError) {
    const { meaning, remedy } = ERROR_CODES[error.code];
    return {
      ...base,
      code: error.code,
      message: [meaning, ...detailsInWords(error.details)].join(' '),
      remedy,
    };
  }
  if (error instanceof JournalError) {
    // 3D000: no such database; 28xxx: who connects is not let in.
    const known = error.kind === 'unavailable' || /^(3D000|28)/.test(error.sqlState);
    const { meaning, remedy } = ERROR_CODES[known ? 'journal.unavailable' : 'journal.missing'];
    const code = known ? 'journal.unavailable' : 'journal.missing';
    return { ...base, code, message: `${meaning} (${error.sqlState})`, remedy: known ? REACH : remedy };
  }
  const name = error instanceof Error ? error.name : typeof error;
  return { ...base, code: 'unexpected', message: `An unexpected ${name}.`, remedy: 'Please report it.' };
}
