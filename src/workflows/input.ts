/** Decodes what the workflow is started with: by a person, or by the execution that it continues. */

import { type Carried, MIRROR_NAME, type MirrorInput } from '../domain/messages.ts';
import { fail } from './endings.ts';

const REQUESTS: readonly Carried['control'][] = ['none', 'cancel', 'abort'];

/** @throws ApplicationFailure `invalid` */
export function decodeInput(input: unknown): MirrorInput {
  const fields = fieldsOf(input);
  const { mirror, carried } = fields;
  // A key that means nothing here is a wish that would not be fulfilled.
  const known = Object.keys(fields).every((key) => key === 'mirror' || key === 'carried');
  if (!known || typeof mirror !== 'string' || !MIRROR_NAME.test(mirror)) {
    throw fail('invalid', 'input', 'the input is {"mirror": "<name>"}, with the name of a configured mirror');
  }
  return carried === undefined ? { mirror } : { mirror, carried: decodeCarried(carried) };
}

/** Keys that a later release may have added are none of this one's business. */
function decodeCarried(value: unknown): Carried {
  const { runId, paused, control, resumed } = fieldsOf(value);
  const request = REQUESTS.find((known) => known === control);
  const run = typeof runId === 'string' ? runId : null;
  if (typeof paused !== 'boolean' || typeof resumed !== 'boolean' || request === undefined) {
    throw fail('invalid', 'input', '`carried` is what an execution hands to its continuation; leave it out');
  }
  return { runId: run, paused, control: request, resumed };
}

function fieldsOf(value: unknown): { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
