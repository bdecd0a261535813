/** Looks into zod schemas, ours and the adapters': which keys an object knows, and how a place describes itself. */

import { z } from 'zod';
import type { Path } from './problem.ts';

/** Every schema that may describe `path`: several where unions branch. */
export function schemasAt(schema: z.core.$ZodType, path: Path): readonly z.core.$ZodType[] {
  const [part, ...rest] = path;
  if (part === undefined) return unwrap(schema);
  return unwrap(schema).flatMap((candidate) =>
    children(candidate, part).flatMap((child) => schemasAt(child, rest)),
  );
}

/** The keys that objects at `path` know. */
export function knownKeys(schema: z.core.$ZodType, path: Path): readonly string[] {
  const keys = schemasAt(schema, path).flatMap((found) =>
    found instanceof z.core.$ZodObject ? Object.keys(found._zod.def.shape) : [],
  );
  return [...new Set(keys)];
}

/** The description at `path`: in this project's schemas, what would be valid there. */
export function validWords(schema: z.core.$ZodType, path: Path): string | null {
  return metaAt(schema, path, (meta) => (typeof meta.description === 'string' ? meta.description : null));
}

/** What would be a valid key of the record at `path`. */
export function validKeyWords(schema: z.core.$ZodType, path: Path): string | null {
  for (const found of schemasAt(schema, path)) {
    if (found instanceof z.core.$ZodRecord) return validWords(found._zod.def.keyType, []);
  }
  return null;
}

/** Whether an adapter marks the place as secret with `.meta({ secret: true })`. */
export function isMarkedSecret(schema: z.core.$ZodType, path: Path): boolean {
  return metaAt(schema, path, (meta) => (meta.secret === true ? true : null)) ?? false;
}

type Meta = { readonly [key: string]: unknown };

/** The first answer of `ask` from the place's schema, from outside in (a description may sit on any wrapper). */
function metaAt<T>(schema: z.core.$ZodType, path: Path, ask: (meta: Meta) => T | null): T | null {
  const [part, ...rest] = path;
  if (part === undefined) {
    for (const layer of layers(schema)) {
      const meta = z.globalRegistry.get(layer);
      const answer = meta === undefined ? null : ask(meta);
      if (answer !== null) return answer;
    }
    return null;
  }
  for (const candidate of unwrap(schema)) {
    for (const child of children(candidate, part)) {
      const answer = metaAt(child, rest, ask);
      if (answer !== null) return answer;
    }
  }
  return null;
}

function layers(schema: z.core.$ZodType): readonly z.core.$ZodType[] {
  return [schema, ...inner(schema).flatMap(layers)];
}

/** Strips wrappers and opens unions, down to schemas that have children or are plain. */
function unwrap(schema: z.core.$ZodType): readonly z.core.$ZodType[] {
  const within = inner(schema);
  return within.length === 0 ? [schema] : within.flatMap(unwrap);
}

function inner(schema: z.core.$ZodType): readonly z.core.$ZodType[] {
  if (schema instanceof z.core.$ZodUnion) return schema._zod.def.options;
  if (schema instanceof z.core.$ZodIntersection) return [schema._zod.def.left, schema._zod.def.right];
  if (schema instanceof z.core.$ZodPipe) {
    // `preprocess` is a pipe whose first half knows nothing.
    return schema._zod.def.in instanceof z.core.$ZodTransform ? [schema._zod.def.out] : [schema._zod.def.in];
  }
  if (
    schema instanceof z.core.$ZodOptional ||
    schema instanceof z.core.$ZodNullable ||
    schema instanceof z.core.$ZodDefault ||
    schema instanceof z.core.$ZodPrefault ||
    schema instanceof z.core.$ZodReadonly ||
    schema instanceof z.core.$ZodCatch
  )
    return [schema._zod.def.innerType];
  if (schema instanceof z.core.$ZodLazy) return [schema._zod.innerType];
  return [];
}

function children(schema: z.core.$ZodType, part: string | number): readonly z.core.$ZodType[] {
  if (schema instanceof z.core.$ZodObject) {
    const { shape, catchall } = schema._zod.def;
    const child = Object.hasOwn(shape, part) ? shape[String(part)] : catchall;
    return child === undefined ? [] : [child];
  }
  if (schema instanceof z.core.$ZodRecord) return [schema._zod.def.valueType];
  if (schema instanceof z.core.$ZodArray) return [schema._zod.def.element];
  return [];
}
