/**
 * Payload schemas validate; they may not alter (design.md section 9): what the provider would have to change is refused
 * here, before anything is sealed or sent.
 */

import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import { RetlError } from '../domain/errors.ts';
import type { EncodedMember } from '../domain/member.ts';
import { sha256Hex } from './hash.ts';

/** Of the payloads of upserts and removals. */
export interface PayloadSchemas {
  readonly upsert: z.ZodType;
  readonly remove: z.ZodType;
}

/** A check for each member; `null` where the adapter has no schemas, so that nothing is parsed. */
export function payloadCheck(
  schemas: Partial<PayloadSchemas> | undefined,
): ((member: EncodedMember, sourceKey: string) => void) | null {
  if (schemas === undefined) return null;
  return ({ identity, upsert, remove }, sourceKey) => {
    for (const [action, text] of [
      ['upsert', upsert],
      ['remove', remove ?? identity],
    ] as const) {
      const schema = schemas[action];
      if (schema === undefined) continue;
      const payload: unknown = JSON.parse(text);
      const result = schema.safeParse(payload);
      if (result.success && isDeepStrictEqual(result.data, payload)) continue;
      const rule = result.success ? 'schema-alters-payload' : 'payload-schema';
      const fields = result.success
        ? []
        : result.error.issues.map((issue) => issue.path.map(String).join('.'));
      throw new RetlError('data.invalid-row', {
        rule,
        action,
        fields,
        keyHash: `sha256:${sha256Hex(sourceKey)}`,
      });
    }
  };
}
