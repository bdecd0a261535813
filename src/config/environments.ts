/**
 * `environments` of retl.yaml: variants of the file, of which one is chosen with `--env` or `RETL_ENV`. What an environment
 * says stands before what the file says above it, key by key; without a choice the file is read as it stands.
 */

import { TASK_QUEUE } from '../domain/messages.ts';
import { isMapping } from './check-connections.ts';
import { valueAt } from './issue-problems.ts';
import { nearest } from './nearest.ts';
import type { Path, Problem } from './problem.ts';
import type { Env } from './secrets.ts';
import type { YamlFile } from './yaml-file.ts';

export const ENVIRONMENT_VARIABLE = 'RETL_ENV';

/** The environment that a process is in; `null`: none is chosen. The command line puts `--env` into the variable. */
export function chosenEnvironment(env: Env = process.env): string | null {
  return env[ENVIRONMENT_VARIABLE] || null;
}

/** Each environment has workers of its own, also where two share a Temporal namespace. */
export function defaultTaskQueue(environment: string | null): string {
  return environment === null ? TASK_QUEUE : `${TASK_QUEUE}-${environment}`;
}

export function environmentNames(file: YamlFile): readonly string[] {
  const written = valueAt(file.value, ['environments']);
  return isMapping(written) ? Object.keys(written) : [];
}

/** How many levels of keys are put together; what lies deeper is replaced as a whole. */
const LEVELS: { readonly [section: string]: number } = {
  journal: 1,
  temporal: 1,
  metrics: 0,
  indexes: 2,
  artifacts: 0,
  maintenance: 1,
  connections: 2,
  defaults: 2,
};

/** The file as one environment sees it: problems still stand where the setting in question is written. */
export function inEnvironment(file: YamlFile, name: string | null): YamlFile {
  if (name === null || !isMapping(file.value)) return file;
  const overlay = valueAt(file.value, ['environments', name]);
  if (!isMapping(overlay)) return file;
  const value: { [key: string]: unknown } = { ...file.value };
  for (const [section, levels] of Object.entries(LEVELS))
    if (Object.hasOwn(overlay, section))
      value[section] = merged(valueAt(file.value, [section]), overlay[section], levels);
  return {
    file: file.file,
    value,
    problemAt(path, message, remedy, target) {
      const over = ['environments', name, ...path];
      const isOver = valueAt(value, path) === undefined ? isPartOf(overlay, path) : isIn(overlay, path);
      return file.problemAt(isOver ? over : path, message, remedy, target);
    },
  };
}

function merged(base: unknown, over: unknown, levels: number): unknown {
  if (levels === 0 || !isMapping(base) || !isMapping(over)) return over;
  // Another system's keys say nothing about this one's.
  if (over.type !== undefined && base.type !== undefined && over.type !== base.type) return over;
  const result: { [key: string]: unknown } = { ...base };
  for (const [key, value] of Object.entries(over)) result[key] = merged(base[key], value, levels - 1);
  return result;
}

function isIn(root: unknown, path: Path): boolean {
  return valueAt(root, path) !== undefined;
}

/** Of a setting that is missing: whether the environment says anything of what it is missing from. */
function isPartOf(root: unknown, path: Path): boolean {
  return path.length > 1 && isIn(root, path.slice(0, -1));
}

/** A name that the file does not define is refused, whatever else is right. */
export function unknownEnvironment(file: YamlFile, name: string | null): readonly Problem[] {
  const known = environmentNames(file);
  if (name === null || known.includes(name)) return [];
  const meant = nearest(name, known);
  const list = known.length === 0 ? 'It defines none.' : `Defined there: ${known.join(', ')}.`;
  return [
    file.problemAt(
      ['environments'],
      `retl.yaml defines no environment \`${name.slice(0, 63)}\` (--env, ${ENVIRONMENT_VARIABLE}).`,
      meant === null ? list : `Did you mean \`${meant}\`? ${list}`,
    ),
  ];
}

interface Place {
  readonly name: string | null;
  readonly texts: { readonly queue: string; readonly journal: string };
}

/**
 * Environments must not mix: neither a task queue nor a journal of their own may be the same in two of them, as far as the
 * file alone can tell. What a reference gives is known on the machine of each environment only.
 */
export function mixedEnvironments(file: YamlFile): readonly Problem[] {
  const names = environmentNames(file);
  // Without a journal the file as it stands is no place to run in.
  const base = isIn(file.value, ['journal', 'url']) ? [null] : [];
  const places = [...base, ...names].map((name) => placeOf(file, name));
  return places.flatMap((place, index) => {
    if (place.name === null) return [];
    const before = places.slice(0, index);
    const problems: Problem[] = [];
    const sameQueue = before.find((other) => isSame(other.texts.queue, place.texts.queue));
    if (sameQueue !== undefined)
      problems.push(
        file.problemAt(
          ['environments', place.name, 'temporal'],
          `This environment has the task queue of ${words(sameQueue)}: a worker of one would take up runs of the other.`,
          'Give it a `task_queue` or a `namespace` of its own here, or leave `task_queue` out everywhere.',
        ),
      );
    const sameJournal = before.find((other) => isSame(other.texts.journal, place.texts.journal));
    if (sameJournal !== undefined)
      problems.push(
        file.problemAt(
          ['environments', place.name, 'journal'],
          `This environment has the journal of ${words(sameJournal)}.`,
          'Give it a journal of its own: `journal: {url: …}` here.',
        ),
      );
    return problems;
  });
}

function placeOf(file: YamlFile, name: string | null): Place {
  const { value } = inEnvironment(file, name);
  const text = (key: string) => String(valueAt(value, ['temporal', key]) ?? '');
  const queue = text('task_queue') || defaultTaskQueue(name);
  return {
    name,
    texts: {
      queue: [text('profile'), text('address'), text('namespace'), queue].join('\n'),
      journal: String(valueAt(value, ['journal', 'url']) ?? ''),
    },
  };
}

function isSame(a: string, b: string): boolean {
  return a === b && a !== '' && !a.includes('${');
}

function words({ name }: Place): string {
  return name === null ? 'the file without an environment' : `\`${name}\``;
}
