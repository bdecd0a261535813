/** A mirror written in TypeScript: `export default defineMirror({…})` in `mirrors/<name>.ts`. */

import type { z } from 'zod';
import type { MirrorProjection } from '../domain/member.ts';
import type { mirrorInput } from './mirror-schema.ts';

type Written = z.input<typeof mirrorInput>;

/**
 * The keys of a mirror's YAML file, with the same meaning and the same checks. `mapping` may also be the projection
 * itself; without a `mapping`, `members` says what a row means.
 */
export type MirrorDefinition = Omit<Written, 'members' | 'mapping'> &
  (
    | { readonly members: NonNullable<Written['members']>; readonly mapping?: never }
    | { readonly mapping: NonNullable<Written['mapping']> | MirrorProjection; readonly members?: never }
  );

/** Gives back what it is given: it is there for the editor, which then knows every key and what it may be. */
export function defineMirror(definition: MirrorDefinition): MirrorDefinition {
  return definition;
}
