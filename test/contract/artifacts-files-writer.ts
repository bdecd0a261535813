/** Puts artifacts of 200 kB into the folder of its argument until it is killed; says each reference once it is put. */

import { randomBytes } from 'node:crypto';
import { FileArtifacts } from '../../src/indexing/artifacts/files.ts';

const store = new FileArtifacts(process.argv[2] ?? '');
const put = async (): Promise<void> => {
  for (;;) {
    const answer = await store.put({ type: 'test.bytes', bytes: randomBytes(200_000) });
    if (answer.kind !== 'stored') throw new Error(answer.kind);
    process.stdout.write(`${answer.reference}\n`);
  }
};
await Promise.all([put(), put(), put()]);
