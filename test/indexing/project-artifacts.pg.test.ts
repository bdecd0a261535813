/** `artifacts` of retl.yaml: where checkpoints go, and that those of the journal are found after a change. */

import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { referenceOf } from '../../src/journal/artifact-store.ts';
import { journalArtifacts } from '../../src/journal/artifacts.ts';
import { projectArtifacts } from '../../src/worker-artifacts.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { createTestProject, type TestProject } from '../support/project.ts';

let journal: TestJournal;
let project: TestProject;
const artifact = (text: string) => ({ type: 'test.bytes', bytes: Buffer.from(text) });

beforeAll(async () => {
  journal = await createTestJournal();
  process.env.ARTIFACTS_JOURNAL_URL = journal.runtimeUrl;
  project = await createTestProject();
});
afterAll(async () => {
  await project.remove();
  await journal.close();
});

async function storeOf(artifacts: object | null) {
  const url = `\${env:ARTIFACTS_JOURNAL_URL}`;
  const base = { journal: { url }, connections: {} };
  await project.write('retl.yaml', artifacts === null ? base : { ...base, artifacts });
  return projectArtifacts(project.folder, journal.runtime);
}

test('the journal keeps them by default; a store of files does when it is named, and loses none that were there', async () => {
  await (await storeOf(null)).put(artifact('first'));
  expect(await journalArtifacts(journal.runtime).get(referenceOf(artifact('first')))).toMatchObject({
    kind: 'found',
  });
  await mkdir(join(project.folder, 'kept'));
  const files = await storeOf({ type: 'files', folder: 'kept' });
  await files.put(artifact('second'));
  expect(await readdir(join(project.folder, 'kept'))).not.toEqual([]);
  for (const text of ['first', 'second'])
    expect(await files.get(referenceOf(artifact(text)))).toMatchObject({ kind: 'found' });
  // Back again: what the files have is lost from sight until they are named.
  const back = await storeOf({ type: 'journal' });
  expect(await back.get(referenceOf(artifact('second')))).toEqual({ kind: 'missing' });
  const both = await storeOf({ type: 'journal', former: [{ type: 'files', folder: 'kept' }] });
  expect(await both.get(referenceOf(artifact('second')))).toMatchObject({ kind: 'found' });
});

test('a store whose options are wrong is refused when they are read, without a value', async () => {
  const store = await storeOf({ type: 'journal', former: [{ type: 's3', bukket: 'secret-name' }] });
  const failed = store.put(artifact('third'));
  await expect(failed).rejects.toMatchObject({ code: 'config.invalid' });
  await expect(failed).rejects.not.toThrow('secret-name');
});
