/** `artifacts` of retl.yaml: where checkpoints are kept. Each store judges its own options when it is opened. */

import { z } from 'zod';
import type { ArtifactSettings } from '../domain/settings.ts';
import { plainOptions } from './json-value.ts';

const store = z
  .looseObject({
    type: z.enum(['journal', 'files', 's3']).describe('journal, files or s3'),
  })
  .describe('{type} and the options of that type');

export const artifactsInput = store
  .extend({
    former: z
      .array(store)
      .max(8)
      .describe('stores that were used before, which are read and no longer written')
      .optional(),
  })
  .describe(
    'where checkpoints are kept: {type: journal}, the default, {type: files, folder} or {type: s3, …}',
  );

export function artifactSettings(input: z.infer<typeof artifactsInput> | undefined): ArtifactSettings {
  const { former = [], ...current } = input ?? { type: 'journal' };
  return { current: plainOptions(current), former: former.map((one) => plainOptions(one)) };
}
