/** The default store of artifacts: the journal's own table, which nobody can change. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { referenceOf } from '../../src/journal/artifact-store.ts';
import { journalArtifacts } from '../../src/journal/artifacts.ts';
import { hashBytes } from '../../src/journal/batches.ts';
import { transaction } from '../../src/journal/pool.ts';
import { createTestJournal, stateOf, type TestJournal } from '../support/journal.ts';
import { describeArtifactStore } from './artifacts.contract.ts';

describeArtifactStore('the journal', async () => {
  const journal = await createTestJournal();
  /** As a superuser who switches the triggers and constraints off. */
  const behind = async (sql: string, values: readonly unknown[]): Promise<void> => {
    const client = await journal.admin.connect();
    try {
      await client.query('begin');
      await client.query('set local session_replication_role = replica');
      await client.query(sql, [...values]);
      await client.query('commit');
    } finally {
      client.release();
    }
  };
  return {
    store: journalArtifacts(journal.runtime),
    other: journalArtifacts(journal.runtime),
    replace: (reference, by) =>
      behind('update retl.artifact set type = $2, bytes = $3 where reference = $1', [
        hashBytes(reference),
        by.type,
        Buffer.from(by.bytes),
      ]),
    remove: (reference) => behind('delete from retl.artifact where reference = $1', [hashBytes(reference)]),
    close: () => journal.close(),
  };
});

describe('the table of artifacts', () => {
  let journal: TestJournal;
  const given = { type: 'test.bytes', bytes: Buffer.from('kept') };

  beforeAll(async () => {
    journal = await createTestJournal();
    await journalArtifacts(journal.runtime).put(given);
  });
  afterAll(() => journal.close());

  test('not even its owner changes or deletes a row', async () => {
    for (const sql of [
      "update retl.artifact set bytes = 'x'",
      'delete from retl.artifact',
      'truncate retl.artifact',
    ]) {
      expect(await stateOf(journal.owner.query(sql)), sql).toBe('RM006');
      expect(await stateOf(journal.runtime.query(sql)), sql).toBe('42501');
    }
  });

  test('a reference that is not the artifact’s own is refused by the database, too', async () => {
    const put = 'select retl.put_artifact($1, $2, $3)';
    const reference = hashBytes(referenceOf(given));
    expect(await stateOf(journal.runtime.query(put, [reference, 'test.bytes', 'other']))).toBe('RM003');
    expect(await stateOf(journal.runtime.query(put, [reference, 'test.other', 'kept']))).toBe('RM003');
    expect(await stateOf(journal.runtime.query(put, [null, 'test.bytes', 'kept']))).toBe('RM003');
  });

  test('a put is part of the transaction that it is made in', async () => {
    const [gone, stays] = ['gone', 'stays'].map((text) => ({ type: 'test.bytes', bytes: Buffer.from(text) }));
    if (gone === undefined || stays === undefined) throw new Error('no artifacts');
    const undone = transaction(journal.runtime, async (client) => {
      await journalArtifacts(client).put(gone);
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    await transaction(journal.runtime, (client) => journalArtifacts(client).put(stays));
    const store = journalArtifacts(journal.runtime);
    expect(await store.get(referenceOf(gone))).toEqual({ kind: 'missing' });
    expect((await store.get(referenceOf(stays))).kind).toBe('found');
  });

  test('people who may see no values see that an artifact is there, and not what it holds', async () => {
    const as = async (role: string, sql: string) => {
      const client = await journal.admin.connect();
      try {
        await client.query(`set role ${role}`);
        return await stateOf(client.query(sql));
      } finally {
        client.release(true);
      }
    };
    expect(await as('retl_inspector', 'select reference, type, stored_at from retl.artifact')).toBeNull();
    expect(await as('retl_inspector', 'select bytes from retl.artifact')).toBe('42501');
    expect(await as('retl_reader', 'select bytes from retl.artifact')).toBeNull();
  });

  test('a page of which the server itself says that it is damaged is a damaged artifact; other failures are failures', async () => {
    const answering = (code: string) => {
      const query = () => Promise.reject(Object.assign(new Error('invalid page'), { code }));
      return journalArtifacts({ query }).get(referenceOf(given));
    };
    expect(await answering('XX001')).toEqual({ kind: 'corrupt' });
    for (const code of ['08006', '42501', 'XX000'])
      await expect(answering(code)).rejects.toMatchObject({ sqlState: code });
  });
});
