/** Reads one file of `mirrors/`: its own form, then what it refers to (connections, destination type, module). */

import type { ScheduleSettings } from '../domain/schedule.ts';
import type { ConnectionSettings, MirrorSettings } from '../domain/settings.ts';
import { type ConnectionUse, isMapping } from './check-connections.ts';
import { withDefaults } from './defaults.ts';
import { issueProblems, sentence, valueAt } from './issue-problems.ts';
import { plainOptions } from './json-value.ts';
import type { Base } from './load-base.ts';
import { mappingModule } from './mapping-module.ts';
import type { MirrorFile } from './mirror-files.ts';
import { readMirrorModule } from './mirror-module.ts';
import { type MirrorInputFile, mirrorInput } from './mirror-schema.ts';
import { baselineOf, listOf, mirrorSettings, rejectionsOf, strategyOf } from './mirror-settings.ts';
import { nearest } from './nearest.ts';
import type { Path, Problem } from './problem.ts';
import { isLonger, scheduleSettings } from './schedule-schema.ts';
import { strayReferences } from './stray-references.ts';
import { type DestinationType, type SystemTypes, typeNames } from './system-types.ts';
import { parseYamlFile, type YamlFile } from './yaml-file.ts';

export interface MirrorContext {
  readonly projectDir: string;
  readonly base: Pick<Base, 'settings' | 'connections' | 'connectionNames' | 'defaults'>;
  readonly types: SystemTypes | null;
}

/** A file of `mirrors/` whose values are there to be judged; `null` where it could not even be read. */
export interface OpenedMirror {
  readonly found: MirrorFile;
  readonly file: YamlFile | null;
  readonly problems: readonly Problem[];
}

export async function openMirror(found: MirrorFile, projectDir: string): Promise<OpenedMirror> {
  const result =
    found.kind === 'module'
      ? await readMirrorModule(found, projectDir)
      : parseYamlFile(found.file, found.bytes);
  return result.kind === 'ok'
    ? { found, file: result.file, problems: [] }
    : { found, file: null, problems: result.problems };
}

/** The connections that a mirror names, also where it has errors. */
export function connectionNamesOf({ file }: OpenedMirror): readonly string[] {
  return ROLES.flatMap((role) => {
    const name = file === null ? null : valueAt(file.value, [role, 'connection']);
    return typeof name === 'string' ? [name] : [];
  });
}

const ROLES = ['source', 'destination'] as const;

export interface MirrorRead {
  readonly settings: MirrorSettings | null;
  /** `null` where the mirror runs only when somebody starts it. */
  readonly schedule: ScheduleSettings | null;
  readonly tags: readonly string[];
  readonly problems: readonly Problem[];
  /** What the file says of connections, also where it has errors elsewhere. */
  readonly uses: readonly ConnectionUse[];
}

const NOTHING: Pick<MirrorRead, 'settings' | 'schedule' | 'tags'> = {
  settings: null,
  schedule: null,
  tags: [],
};

export async function readMirror(opened: OpenedMirror, context: MirrorContext): Promise<MirrorRead> {
  const { found, file } = opened;
  if (file === null) return { ...NOTHING, problems: opened.problems, uses: [] };
  const result = mirrorInput.safeParse(file.value);
  const place = { file, base: [], schema: mirrorInput, value: file.value, showValues: true };
  const problems = result.success ? [] : [...issueProblems(place, result.error.issues)];
  const source = connectionAt(file, 'source', context);
  const destination = destinationAt(file, context);
  const module = await mappingModule(file, found.file, context.projectDir);
  problems.push(...strayReferences(file, [], file.value, 'a mirror'));
  problems.push(...source.problems, ...destination.problems, ...module.problems);
  const uses = [source.use, destination.use].flatMap((use) => (use === null ? [] : [use]));
  const input = result.success ? withDefaults(result.data, context.base.defaults) : null;
  if (input !== null) problems.push(...agreementProblems(file, input, destination));
  if (input === null || problems.length > 0 || source.connection === null || destination.connection === null)
    return { ...NOTHING, problems, uses };
  const settings = mirrorSettings(input, {
    mirror: found.mirror,
    source: source.connection,
    destination: {
      type: destination.connection.type,
      connectionOptions: destination.connection.options,
      options: destination.options,
    },
    module: module.mapping,
  });
  const schedule = input.schedule === undefined ? null : scheduleSettings(input.schedule);
  return { settings, schedule, tags: listOf(input.tags ?? []), problems, uses };
}

interface Connected {
  readonly connection: ConnectionSettings | null;
  readonly use: ConnectionUse | null;
  readonly problems: readonly Problem[];
}

function connectionAt(file: YamlFile, role: ConnectionUse['role'], { base }: MirrorContext): Connected {
  const path: Path = [role, 'connection'];
  const name = valueAt(file.value, path);
  if (typeof name !== 'string' || name === '') return { connection: null, use: null, problems: [] };
  const use = { connection: name, role };
  const connection = Object.hasOwn(base.connections, name) ? base.connections[name] : undefined;
  if (connection !== undefined) return { connection, use, problems: [] };
  const known = base.connectionNames;
  // With an error in retl.yaml no connection has been read: the name may be right all the same.
  if (base.settings === null && (known.length === 0 || known.includes(name)))
    return { connection: null, use, problems: [] };
  const meant = nearest(name, known);
  const list = known.length === 0 ? 'None is defined yet.' : `Defined there: ${known.join(', ')}.`;
  const remedy = meant === null ? list : `Did you mean \`${meant}\`? ${list}`;
  return {
    connection: null,
    use,
    problems: [file.problemAt(path, 'retl.yaml defines no connection of this name.', remedy)],
  };
}

interface Destination extends Connected {
  readonly options: ReturnType<typeof plainOptions>;
  /** The adapter with its parsed options, where both are known to be right. */
  readonly adapter: { readonly type: DestinationType; readonly options: unknown } | null;
}

/** The destination's own options: every key but `connection` and `type`. */
function destinationAt(file: YamlFile, context: MirrorContext): Destination {
  const connected = connectionAt(file, 'destination', context);
  const written = valueAt(file.value, ['destination']);
  if (!isMapping(written)) return { ...connected, options: {}, adapter: null };
  const { connection: _, type: named, ...rest } = written;
  const options = plainOptions(rest);
  const type = typeof named === 'string' ? named : connected.connection?.type;
  const wrongType = typeof named === 'string' ? typeProblem(file, named, connected, context.types) : null;
  const problems = [...connected.problems, ...(wrongType === null ? [] : [wrongType])];
  const adapter = context.types?.destinations.find((candidate) => candidate.type === type);
  // With another type in mind, its author's options say nothing about this one's.
  if (adapter === undefined || wrongType !== null) return { ...connected, options, problems, adapter: null };
  const result = adapter.optionsSchema.safeParse(options);
  if (result.success)
    return { ...connected, options, problems, adapter: { type: adapter, options: result.data } };
  const place = {
    file,
    base: ['destination'],
    schema: adapter.optionsSchema,
    value: options,
    showValues: true,
  };
  return {
    ...connected,
    options,
    problems: [...problems, ...issueProblems(place, result.error.issues)],
    adapter: null,
  };
}

function typeProblem(
  file: YamlFile,
  named: string,
  { connection }: Connected,
  types: SystemTypes | null,
): Problem | null {
  const path: Path = ['destination', 'type'];
  if (types !== null && !types.destinations.some(({ type }) => type === named)) {
    const names = typeNames(types.destinations);
    const meant = nearest(named, names);
    const list = `Expected one of: ${names.join(', ')}.`;
    const remedy = meant === null ? list : `Did you mean \`${meant}\`? ${list}`;
    return file.problemAt(path, 'No destination of this type is known.', remedy);
  }
  if (connection === null || connection.type === named) return null;
  const remedy = `Write \`${connection.type}\`, leave the key out, or name another connection.`;
  return file.problemAt(path, 'The connection is of another type.', remedy);
}

/** Settings that are each valid, and do not go together. */
function agreementProblems(
  file: YamlFile,
  input: MirrorInputFile,
  { adapter }: Destination,
): readonly Problem[] {
  const problems: Problem[] = [];
  const replaces = strategyOf(input) === 'native-replace';
  if (replaces !== (baselineOf(input).kind === 'replace'))
    problems.push(
      file.problemAt(
        ['baseline'],
        `This baseline does not go with the strategy \`${strategyOf(input)}\`.`,
        'Expected: `replace` with native-replace; `new-empty` or `tracked` with snapshot-diff.',
      ),
    );
  const { kind } = rejectionsOf(input);
  if (replaces && kind !== 'stop')
    problems.push(
      file.problemAt(
        ['on_rejection'],
        `\`${kind}\` does not go with the strategy \`native-replace\`: the finish would drop whoever was rejected.`,
        'Write `on_rejection: stop`.',
      ),
    );
  const key = listOf(input.source.key);
  if (new Set(key).size < key.length)
    problems.push(file.problemAt(['source', 'key'], 'A key column stands twice.', 'Name each column once.'));
  const tags = listOf(input.tags ?? []);
  if (new Set(tags).size < tags.length)
    problems.push(file.problemAt(['tags'], 'A tag stands twice.', 'Write each tag once.'));
  if (isLonger(input.schedule?.jitter, input.schedule?.every))
    problems.push(
      file.problemAt(
        ['schedule'],
        'The default jitter of retl.yaml is longer than the time between two starts.',
        'Write a `jitter` here: at most the duration of `every`.',
      ),
    );
  if (adapter === null) return problems;
  const words = listOf(input.members ?? []).flatMap((member) =>
    adapter.type.checkFields(
      adapter.options,
      Object.keys(member.identity),
      Object.keys(member.payload ?? {}),
    ),
  );
  problems.push(
    ...[...new Set(words)].map((message) => file.problemAt(['destination'], sentence(message), '')),
  );
  return problems;
}
