/** Decodes what YAML or JSON gave into the domain's own words for it. */

import { z } from 'zod';
import type { Options } from '../domain/settings.ts';
import type { SourceValue } from '../domain/source-row.ts';

export const jsonValue: z.ZodType<SourceValue> = z.lazy(() =>
  z.union([
    z.null(),
    z.boolean(),
    z.number(),
    z.string(),
    z.array(jsonValue),
    z.record(z.string(), jsonValue),
  ]),
);

export const jsonOptions: z.ZodType<Options> = z.record(z.string(), jsonValue);

/** @throws ZodError where a value is not JSON: the YAML reader lets nothing else through. */
export function plainOptions(value: unknown): Options {
  return jsonOptions.parse(value);
}
