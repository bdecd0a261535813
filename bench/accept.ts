/** A destination that accepts at once, so that a whole run measures this project and not somebody's API. */

import { z } from 'zod';
import type { DestinationAdapter, Writer } from '../src/destinations/port.ts';

const accepted = { kind: 'accepted', receipt: { ok: true } } as const;
const unasked = { kind: 'unknown', code: 'never-asked' } as const;

const writer: Writer = {
  preflight: async () => [],
  checkEmpty: async () => ({ kind: 'empty' }),
  init: async () => accepted,
  reconcileInit: async () => accepted,
  attach: async () => accepted,
  upsert: async () => accepted,
  remove: async () => accepted,
  poll: async () => unasked,
  finish: async () => accepted,
  reconcileBatch: async () => accepted,
  reconcileFinish: async () => accepted,
  abort: async () => accepted,
  close: async () => undefined,
};

export const acceptDestination: DestinationAdapter<{ name: string }, Record<string, never>> = {
  type: 'accept',
  connectionSchema: z.strictObject({ name: z.string() }),
  optionsSchema: z.strictObject({}),
  capabilities: () => ({
    strategies: ['snapshot-diff'],
    explicitRemoval: true,
    batchDelivery: 'accepted',
    recovery: 'idempotent',
    visible: 'on_accept',
    maxRows: 10_000,
    maxBytes: 16_000_000,
    maxInFlight: 8,
    longestRequestMs: 1_000,
    identityFolding: [],
  }),
  targetKey: ({ name }) => JSON.stringify(['accept', name]),
  frame: () => ({ open: '[', itemOpen: '', itemClose: '', separator: ',', close: ']', operationId: null }),
  checkFields: () => [],
  open: async () => writer,
};
