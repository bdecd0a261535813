import { describe, expect, it } from 'vitest';
import { RowStream } from '../../src/sources/postgres/row-stream.ts';

/** A stream that has been told of `rows` rows, and then by the server that it was `tag`. */
function ended(rows: number, tag: string | null): { stream: RowStream; completions: number } {
  const result = { stream: new RowStream(() => result.completions++), completions: 0 };
  for (let i = 0; i < rows; i++) result.stream.handleDataRow({ fields: [String(i)], length: 12 });
  if (tag !== null) result.stream.handleCommandComplete({ text: tag });
  result.stream.handleReadyForQuery();
  return result;
}

describe('the end of a stream of rows', () => {
  it('is the end when the count of the server is the count of the rows', async () => {
    const { stream, completions } = ended(2, 'SELECT 2');
    expect(completions).toBe(1);
    expect(await stream.next()).toEqual([['0'], ['1']]);
    expect(await stream.next()).toBeNull();
  });

  it.each([
    [2, 'SELECT 3'],
    [2, 'SELECT 1'],
    [0, 'SELECT 1'],
    [2, 'COPY 2'],
    [2, null],
    [0, null],
  ])('read-dies-midway: %i rows and then %s is not the end', async (rows, tag) => {
    const result = ended(rows, tag);
    expect(result.completions).toBe(0);
    await expect(result.stream.next()).rejects.toThrow('without having sent it whole');
  });

  it('read-dies-midway: rows that came before an error are not handed out after it', async () => {
    const stream = new RowStream(() => undefined);
    stream.handleDataRow({ fields: ['0'], length: 12 });
    stream.handleError(new Error('lost'));
    stream.handleCommandComplete({ text: 'SELECT 1' });
    stream.handleReadyForQuery();
    await expect(stream.next()).rejects.toThrow('lost');
    await expect(stream.next()).rejects.toThrow('lost');
  });
});
