import { expect, test } from 'vitest';
import {
  jsonSchemaText,
  MIRROR_SCHEMA_FILE,
  mirrorJsonSchema,
  PROJECT_SCHEMA_FILE,
  projectJsonSchema,
} from '../../src/config/json-schema.ts';
import { SYSTEMS } from './systems.ts';

// `npx vitest run test/config/json-schema.test.ts -u` writes them anew after a change of the configuration.
test('the committed JSON Schema of retl.yaml is that of the code', async () => {
  await expect(jsonSchemaText(projectJsonSchema(SYSTEMS))).toMatchFileSnapshot(
    `../../${PROJECT_SCHEMA_FILE}`,
  );
});

test('the committed JSON Schema of a mirror is that of the code', async () => {
  await expect(jsonSchemaText(mirrorJsonSchema(SYSTEMS))).toMatchFileSnapshot(`../../${MIRROR_SCHEMA_FILE}`);
});
