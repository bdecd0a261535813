/** Where a search engine is and how it is entered, its references resolved. Messages repeat no value. */

import { z } from 'zod';
import { RetlError } from '../../domain/errors.ts';
import { isBareHttpUrl, isPlainHttp } from '../../domain/http-url.ts';
import type { EngineName, Options } from '../../domain/settings.ts';

const text = z.string().min(1, 'must not be empty');

const options = z
  .strictObject({
    url: z
      .string()
      .refine(isBareHttpUrl, 'must be an http or https URL without user, password, query or fragment'),
    username: text.optional(),
    password: text.optional(),
    api_key: text.optional(),
    ca: text.includes('-----BEGIN CERTIFICATE-----', { error: 'must be certificates in PEM' }).optional(),
    allow_plain_http: z.boolean().default(false),
    prefix: z.string().default(''),
    shards: z.int().default(1),
    replicas: z.int().default(1),
    timeout_ms: z.int().default(60_000),
  })
  .superRefine(({ url, allow_plain_http: allowed }, context) => {
    if (isBareHttpUrl(url) && isPlainHttp(url) && !allowed)
      context.addIssue({ code: 'custom', path: ['url'], message: 'plain http is for loopback only' });
  });

export type EngineOptions = z.output<typeof options>;

/** @throws RetlError `index.misconfigured` naming each place that is wrong, and no value */
export function engineOptions(system: EngineName, given: Options): EngineOptions {
  const read = options.safeParse(given);
  if (read.success) return read.data;
  const faults = read.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
  throw new RetlError('index.misconfigured', { system, rule: faults.join('; ') });
}
