/** What configuration needs to know of the systems; every source and destination adapter fits. */

import type { z } from 'zod';

export interface SourceType {
  readonly type: string;
  readonly connectionSchema: z.ZodType;
}

export interface DestinationType extends SourceType {
  readonly optionsSchema: z.ZodType;
  /** Cross-checks parsed options against the names of the mapped fields; returns problems in words. */
  checkFields(options: unknown, identity: readonly string[], payload: readonly string[]): readonly string[];
}

export interface SystemTypes {
  readonly sources: readonly SourceType[];
  readonly destinations: readonly DestinationType[];
}

/** The names of the types there are, sorted. */
export function typeNames(types: readonly { readonly type: string }[]): readonly string[] {
  return [...new Set(types.map(({ type }) => type))].sort();
}
