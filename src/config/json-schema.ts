/** JSON Schemas of the configuration files, for editors: completion, hover and marks while typing. */

import { z } from 'zod';
import { mirrorInput } from './mirror-schema.ts';
import { projectInput } from './project-schema.ts';
import type { SystemTypes } from './system-types.ts';

export const PROJECT_SCHEMA_FILE = 'schema/retl.schema.json';
export const MIRROR_SCHEMA_FILE = 'schema/mirror.schema.json';

type Json = z.core.JSONSchema.BaseSchema;

/** Schema of `retl.yaml`; every connection is one of the types there are. */
export function projectJsonSchema(types: SystemTypes): Json {
  const schema = generate(projectInput);
  const variants = [...types.sources, ...types.destinations].map(({ type, connectionSchema }) =>
    withKeys(generate(connectionSchema), { type: { const: type } }, ['type']),
  );
  const connections = schema.properties?.connections;
  if (typeof connections === 'object') connections.additionalProperties = anyOf(variants.flat());
  return titled(schema, 'retl.yaml');
}

/** Schema of the files of `mirrors/`; the destination is one of the types there are. */
export function mirrorJsonSchema(types: SystemTypes): Json {
  const schema = generate(mirrorInput);
  const destination = schema.properties?.destination;
  if (typeof destination === 'object' && schema.properties !== undefined) {
    const own = destination.properties ?? {};
    const variants = types.destinations.map(({ type, optionsSchema }) => {
      const keys = { ...own, type: { ...objectOf(own.type), const: type } };
      return withKeys(generate(optionsSchema), keys, ['connection']);
    });
    schema.properties.destination = {
      ...(destination.description === undefined ? {} : { description: destination.description }),
      ...anyOf(variants.flat()),
    };
  }
  schema.oneOf = [{ required: ['members'] }, { required: ['mapping'] }];
  const schedule = schema.properties?.schedule;
  if (typeof schedule === 'object') schedule.oneOf = [{ required: ['every'] }, { required: ['cron'] }];
  return titled(schema, 'a retl mirror');
}

/** As committed: two spaces, a final newline. */
export function jsonSchemaText(schema: Json): string {
  return `${JSON.stringify(schema, null, 2)}\n`;
}

function generate(schema: z.core.$ZodType): Json {
  const generated = z.toJSONSchema(schema, {
    io: 'input',
    target: 'draft-07',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      delete jsonSchema.secret;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
    },
  });
  const { '~standard': _, $schema: __, definitions: ___, ...plain } = generated;
  return withoutReferences(plain);
}

/** Only schemas that contain themselves (any JSON value) are referred to; an editor may take anything there. */
function withoutReferences(schema: Json): Json {
  return JSON.parse(JSON.stringify(schema, (_key, value) => (isReference(value) ? {} : value)));
}

function isReference(value: unknown): boolean {
  return typeof value === 'object' && value !== null && '$ref' in value;
}

function titled(schema: Json, title: string): Json {
  return { $schema: 'http://json-schema.org/draft-07/schema#', title, ...schema };
}

/** Adds keys to an object schema, or to each branch of a union of such. */
function withKeys(
  schema: Json,
  keys: { readonly [key: string]: Json | boolean },
  required: readonly string[],
): readonly Json[] {
  const branches = schema.anyOf ?? schema.oneOf;
  if (branches !== undefined) return branches.flatMap((branch) => withKeys(objectOf(branch), keys, required));
  return [
    {
      ...schema,
      type: 'object',
      properties: { ...schema.properties, ...keys },
      required: [...new Set([...required, ...(schema.required ?? [])])],
    },
  ];
}

function anyOf(variants: readonly Json[]): Json {
  const distinct = new Map(variants.map((variant) => [JSON.stringify(variant), variant]));
  return distinct.size === 0 ? { type: 'object' } : { anyOf: [...distinct.values()] };
}

function objectOf(schema: Json | boolean | undefined): Json {
  return typeof schema === 'object' ? schema : {};
}
