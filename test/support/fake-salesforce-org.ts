/** What the fake org holds: records of one object, and ingest jobs that work on them. */

export type Fields = Readonly<Record<string, string | null>>;

export interface OrgRecord {
  readonly Id: string;
  IsDeleted: boolean;
  fields: Record<string, string | null>;
}

/** How a job goes, where it does not simply go well. */
export interface JobEnd {
  /** Questions that still find it in progress. */
  readonly polls?: number;
  readonly state?: 'Failed' | 'Aborted';
  readonly message?: string;
  /** Rows that are looked at before it stops; all of them where not given. */
  readonly processed?: number;
  /** Positions of rows that are refused. */
  readonly reject?: readonly number[];
  /** Positions of rows that the tables leave out, or tell of twice; IDs of strangers in the first table. */
  readonly missing?: readonly number[];
  readonly repeat?: readonly number[];
  readonly foreign?: readonly string[];
  readonly shuffle?: boolean;
}

export interface OrgJob {
  readonly id: string;
  readonly object: string;
  readonly operation: string;
  readonly end: JobEnd;
  state: string;
  data: string;
  polls: number;
  results: Result[];
}

interface Result {
  readonly kind: 'successfulResults' | 'failedResults' | 'unprocessedrecords';
  readonly cells: readonly string[];
  readonly id: string;
  readonly error: string;
}

export const KEY = 'Key__c';

export class FakeOrg {
  readonly records: OrgRecord[] = [];
  readonly jobs = new Map<string, OrgJob>();
  /** How often each record was written or deleted, by its key. */
  readonly effects: string[] = [];
  #ids = 0;

  reset(): void {
    this.records.length = 0;
    this.jobs.clear();
    this.effects.length = 0;
  }

  get live(): readonly OrgRecord[] {
    return this.records.filter(({ IsDeleted }) => !IsDeleted);
  }

  /** A record as somebody else would make it. */
  add(fields: Record<string, string | null>): OrgRecord {
    this.#ids += 1;
    const record = { Id: `a01${String(this.#ids).padStart(12, '0')}AAA`, IsDeleted: false, fields };
    this.records.push(record);
    return record;
  }

  create({ object, operation }: { object: string; operation: string }, end: JobEnd): unknown {
    const id = `750${String(this.jobs.size + 1).padStart(12, '0')}AAA`;
    const polls = end.polls ?? 0;
    const job: OrgJob = { id, object, operation, end, state: 'Open', data: '', polls, results: [] };
    this.jobs.set(id, job);
    return this.info(job, false);
  }

  /** What a question about a job is answered with; asking lets it go on. */
  info(job: OrgJob, goesOn = true): unknown {
    if (goesOn && (job.state === 'UploadComplete' || job.state === 'InProgress')) {
      if (job.polls > 0) job.state = 'InProgress';
      else this.#work(job);
      job.polls -= 1;
    }
    const { id, state, object, operation } = job;
    const failed = job.results.filter(({ kind }) => kind === 'failedResults').length;
    const processed = job.results.filter(({ kind }) => kind !== 'unprocessedrecords').length;
    const counts = { numberRecordsProcessed: processed, numberRecordsFailed: failed };
    const words = state === 'Failed' ? { errorMessage: job.end.message ?? 'InternalServerError' } : {};
    return { id, state, object, operation, contentType: 'CSV', apiVersion: 62, ...counts, ...words };
  }

  #work(job: OrgJob): void {
    const { end } = job;
    const [header = [], ...rows] = parseCsv(job.data);
    job.results = rows.map((cells, index): Result => {
      if (index >= (end.processed ?? rows.length))
        return { kind: 'unprocessedrecords', cells, id: '', error: '' };
      if (end.reject?.includes(index) === true)
        return {
          kind: 'failedResults',
          cells,
          id: '',
          error: `CUSTOM_VALIDATION:row ${index + 1} is not valid:--`,
        };
      const row: Fields = Object.fromEntries(header.map((name, at) => [name, cells[at] ?? '']));
      return { ...(job.operation === 'delete' ? this.#delete(row) : this.#upsert(row)), cells };
    });
    job.state = end.state ?? 'JobComplete';
  }

  #upsert(row: Fields): Omit<Result, 'cells'> {
    const key = row[KEY] ?? '';
    const matches = this.live.filter(({ fields }) => fields[KEY]?.toLowerCase() === key.toLowerCase());
    if (matches.length > 1)
      return { kind: 'failedResults', id: '', error: 'DUPLICATE_VALUE:more than one record:--' };
    const record = matches[0] ?? this.add({});
    for (const [name, value] of Object.entries(row))
      if (value !== '') record.fields[name] = value === '#N/A' ? null : value;
    this.effects.push(`upsert ${key}`);
    return { kind: 'successfulResults', id: record.Id, error: '' };
  }

  #delete(row: Fields): Omit<Result, 'cells'> {
    const record = this.records.find(({ Id }) => Id === row.Id);
    if (record === undefined) return { kind: 'failedResults', id: '', error: 'MALFORMED_ID:bad id:Id --' };
    if (record.IsDeleted)
      return { kind: 'failedResults', id: record.Id, error: 'ENTITY_IS_DELETED:entity is deleted:--' };
    record.IsDeleted = true;
    this.effects.push(`delete ${record.fields[KEY]}`);
    return { kind: 'successfulResults', id: record.Id, error: '' };
  }

  table({ end, data, results }: OrgJob, kind: Result['kind']): string {
    const header = parseCsv(data)[0] ?? [];
    const prefix = {
      successfulResults: ['sf__Id', 'sf__Created'],
      failedResults: ['sf__Id', 'sf__Error'],
      unprocessedrecords: [],
    };
    const lines = results.flatMap((result, index) => {
      if (result.kind !== kind || end.missing?.includes(index) === true) return [];
      const own = {
        successfulResults: [result.id, 'true'],
        failedResults: [result.id, result.error],
        unprocessedrecords: [],
      };
      const line = [...own[kind], ...result.cells].map(quoted).join(',');
      return end.repeat?.includes(index) === true ? [line, line] : [line];
    });
    const strangers = kind === 'successfulResults' ? (end.foreign ?? []) : [];
    for (const id of strangers)
      lines.push(
        [id, 'true', ...header.map((name) => (name === KEY || name === 'Id' ? id : ''))]
          .map(quoted)
          .join(','),
      );
    if (end.shuffle === true) lines.reverse();
    return [[...prefix[kind], ...header].map(quoted).join(','), ...lines, ''].join('\n');
  }

  /** `SELECT COUNT()` of records that have a key, and reads of records by their keys; `null`: not understood. */
  query(soql: string, all: boolean): unknown {
    if (/^SELECT COUNT\(\) FROM \w+ WHERE Key__c != null$/.test(soql))
      return {
        totalSize: this.live.filter(({ fields }) => (fields[KEY] ?? null) !== null).length,
        done: true,
        records: [],
      };
    const list = /^SELECT Id, IsDeleted, Key__c FROM \w+ WHERE Key__c IN \((.*)\)$/s.exec(soql)?.[1];
    if (list === undefined) return null;
    const wanted = [...list.matchAll(/'((?:[^'\\]|\\.)*)'/gs)].map((m) =>
      unescaped(m[1] ?? '').toLowerCase(),
    );
    const records = (all ? this.records : this.live)
      .filter(({ fields }) => wanted.includes(String(fields[KEY]).toLowerCase()))
      .map(({ Id, IsDeleted, fields }) => ({ attributes: {}, Id, IsDeleted, [KEY]: fields[KEY] }));
    return { totalSize: records.length, done: true, records };
  }

  describe(change: { object?: object; key?: object }): unknown {
    const rights = { createable: true, updateable: true, deletable: true, queryable: true };
    const field = (name: string) => ({ name, type: 'string', createable: true, updateable: true });
    const key = {
      ...field(KEY),
      externalId: true,
      idLookup: true,
      unique: true,
      caseSensitive: false,
      ...change.key,
    };
    const fields = [key, ...['Name', 'Plan__c', 'Variant__c'].map(field)];
    return { name: 'Member__c', ...rights, fields, ...change.object };
  }
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/gs, (_, char: string) => ({ n: '\n', r: '\r', t: '\t' })[char] ?? char);
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}

/** Another reader than the one under test: character by character. */
export function parseCsv(text: string): readonly string[][] {
  const rows: string[][] = [];
  let [row, cell, inside]: [string[], string, boolean] = [[], '', false];
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (inside && char === '"' && text.charAt(at + 1) === '"') {
      cell += '"';
      at += 1;
    } else if (char === '"') inside = !inside;
    else if (!inside && (char === ',' || char === '\n')) {
      row.push(cell);
      cell = '';
      if (char === '\n') {
        rows.push(row);
        row = [];
      }
    } else cell += char;
  }
  return rows;
}
