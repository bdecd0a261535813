/** What the fake audience API holds, and what one request does to it. */

export interface AudienceState {
  /** Members by id, as last upserted. */
  readonly members: Map<string, unknown>;
  /** Every effect in the order it took place: a request that was applied twice stands here twice. */
  readonly effects: { readonly action: 'upsert' | 'remove'; readonly id: string }[];
  /** Replies given, by idempotency key: such a request is answered again and not applied again. */
  readonly replies: Map<string, readonly RowResult[]>;
}

export interface RowResult {
  readonly id: string;
  readonly status: string;
  readonly reason?: string;
}

interface StateRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** Applies all rows but those at the positions in `reject`; each result carries the id of its row. */
export function applyRequest(
  state: AudienceState,
  request: StateRequest,
  idFields: readonly string[],
  reject: readonly number[],
): readonly RowResult[] {
  const key = request.headers['idempotency-key'];
  const known = typeof key === 'string' ? state.replies.get(key) : undefined;
  if (known !== undefined) return known;
  const action = request.method === 'DELETE' || request.path.endsWith('/remove') ? 'remove' : 'upsert';
  const results = rowsOf(request).map((row, index): RowResult => {
    const id = pathId(request) ?? idOf(row, idFields);
    const reply = replyId(row, id);
    if (reject.includes(index))
      return { id: reply, status: 'invalid', reason: `row ${index + 1} is not valid` };
    if (action === 'upsert') state.members.set(id, withoutOperationId(row));
    else state.members.delete(id);
    state.effects.push({ action, id });
    return { id: reply, status: 'ok' };
  });
  if (typeof key === 'string') state.replies.set(key, results);
  return results;
}

/** Positions of the members named by `ids`. */
export function positionsOf(
  request: StateRequest,
  idFields: readonly string[],
  ids: ReadonlySet<string>,
): readonly number[] {
  return rowsOf(request).flatMap((row, index) =>
    ids.has(pathId(request) ?? idOf(row, idFields)) ? [index] : [],
  );
}

type Row = Readonly<Record<string, unknown>>;

/** The member that the path names, as in `/audiences/42/members/<id>`. */
function pathId({ path }: StateRequest): string | null {
  const one = /\/members\/([^/?]+)$/.exec(path)?.[1];
  return one === undefined || one === 'remove' ? null : decodeURIComponent(one);
}

function rowsOf(request: StateRequest): readonly Row[] {
  const { body } = request;
  if (pathId(request) !== null) return [body === '' ? {} : (JSON.parse(body) as Row)];
  if (!body.startsWith('[') && body.includes('\n')) return lines(body).map((line) => JSON.parse(line) as Row);
  const parsed = JSON.parse(body) as readonly Row[] | { readonly members: readonly Row[] };
  return 'members' in parsed ? parsed.members : parsed;
}

function lines(text: string): readonly string[] {
  return text.split('\n').filter((line) => line !== '');
}

function withoutOperationId(row: Row): Row {
  const { operation_id: _, ...rest } = row;
  return rest;
}

function idOf(row: Row, idFields: readonly string[]): string {
  const name = idFields.find((candidate) => row[candidate] !== undefined);
  return name === undefined ? JSON.stringify(row) : String(row[name]);
}

function replyId(row: Row, id: string): string {
  return typeof row.operation_id === 'string' ? row.operation_id : id;
}
