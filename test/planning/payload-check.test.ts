import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { RetlError } from '../../src/domain/errors.ts';
import { payloadCheck } from '../../src/planning/payload-check.ts';

const member = (upsert: object) => ({ identity: '{"id":"7"}', upsert: JSON.stringify(upsert), remove: null });

function checkWith(upsert: z.ZodType, remove: z.ZodType = z.unknown()) {
  const check = payloadCheck({ upsert, remove });
  if (check === null) throw new Error('no check');
  return (payload: object) => check(member(payload), '["7"]');
}

function detailsOf(work: () => void) {
  try {
    work();
  } catch (error) {
    if (error instanceof RetlError) return error.details;
    throw error;
  }
  return null;
}

test('an adapter without schemas costs nothing', () => {
  expect(payloadCheck(undefined)).toBeNull();
});

test('a payload that fits passes, one that does not is named by field and key hash, never by value', () => {
  const check = checkWith(z.strictObject({ id: z.string(), plan: z.enum(['vip', 'pro']) }));
  expect(detailsOf(() => check({ id: '7', plan: 'vip' }))).toBeNull();
  const details = detailsOf(() => check({ id: '7', plan: 'secret-plan' }));
  const keyHash = `sha256:${createHash('sha256').update('["7"]').digest('hex')}`;
  expect(details).toEqual({ rule: 'payload-schema', action: 'upsert', fields: ['plan'], keyHash });
  expect(JSON.stringify(details)).not.toContain('secret-plan');
});

test('a schema that would alter the payload refuses it: what is stored is what is sent', () => {
  const check = checkWith(z.object({ id: z.string().trim() }));
  expect(detailsOf(() => check({ id: '7' }))).toBeNull();
  expect(detailsOf(() => check({ id: ' 7' }))).toMatchObject({ rule: 'schema-alters-payload' });
  expect(detailsOf(() => check({ id: '7', more: 1 }))).toMatchObject({ rule: 'schema-alters-payload' });
});

test('removal payloads are held to their own schema', () => {
  const check = checkWith(z.unknown(), z.strictObject({ id: z.literal('8') }));
  expect(detailsOf(() => check({ id: '7' }))).toMatchObject({ rule: 'payload-schema', action: 'remove' });
});
