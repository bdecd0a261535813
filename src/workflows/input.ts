/** Decodes what the workflow is started with: by a person, or by the execution that it continues. */

import {
  type Carried,
  MIRROR_NAME,
  type MirrorInput,
  type Parked,
  type PlanRef,
} from '../domain/messages.ts';
import { fail } from './endings.ts';

const KEYS: readonly string[] = ['mirror', 'approveUpTo', 'plan', 'carried'] satisfies (keyof MirrorInput)[];
const CODES: readonly Parked['code'][] = [
  'unknown-baseline',
  'credentials-changed',
  'removals-moved',
  'route-changed',
  'empty-snapshot',
  'max-removals',
  'max-removal-share',
];
const REQUESTS: readonly Carried['control'][] = ['none', 'cancel', 'abort'];

/** @throws ApplicationFailure `invalid` */
export function decodeInput(input: unknown): MirrorInput {
  const fields = fieldsOf(input);
  const { mirror, approveUpTo, plan, carried } = fields;
  // A key that means nothing here is a wish that would not be fulfilled.
  const known = Object.keys(fields).every((key) => KEYS.includes(key));
  if (!known || typeof mirror !== 'string' || !MIRROR_NAME.test(mirror)) {
    throw fail('invalid', 'input', 'the input is {"mirror": "<name>"}, with the name of a configured mirror');
  }
  return {
    mirror,
    ...(approveUpTo === undefined ? {} : { approveUpTo: decodeApproveUpTo(approveUpTo) }),
    ...(plan === undefined ? {} : { plan: decodePlan(plan) }),
    ...(carried === undefined ? {} : { carried: decodeCarried(carried) }),
  };
}

function decodeApproveUpTo(value: unknown): number {
  if (isCount(value)) return value;
  throw fail('invalid', 'input', '`approveUpTo` is the number of removals that are approved beforehand');
}

function decodePlan(value: unknown): PlanRef {
  const { generation, removals, removalDigest } = fieldsOf(value);
  if (isDigest(generation) && isDigest(removalDigest) && isCount(removals)) {
    return { generation, removals, removalDigest };
  }
  throw fail('invalid', 'input', '`plan` is what `retl plan --out` has saved');
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isDigest(value: unknown): value is string {
  return typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value);
}

/** Keys that a later release may have added are none of this one's business. */
function decodeCarried(value: unknown): Carried {
  const { runId, paused, control, resumed, parked, poll } = fieldsOf(value);
  const request = REQUESTS.find((known) => known === control);
  const run = typeof runId === 'string' ? runId : null;
  if (typeof paused !== 'boolean' || typeof resumed !== 'boolean' || request === undefined) {
    throw fail('invalid', 'input', '`carried` is what an execution hands to its continuation; leave it out');
  }
  const wish = poll === true ? { poll } : {};
  return { runId: run, paused, control: request, resumed, parked: decodeParked(parked), ...wish };
}

/** What is not there, or not whole, is asked of the journal anew. */
function decodeParked(value: unknown): Parked | null {
  const { code, removals, held, shown, deadlineMs } = fieldsOf(value);
  const known = CODES.find((one) => one === code);
  const whole = isCount(removals) && isCount(held) && isDigest(shown) && typeof deadlineMs === 'number';
  return known !== undefined && whole ? { code: known, removals, held, shown, deadlineMs } : null;
}

/** The fields of what somebody may have typed; none where it is no object. */
export function fieldsOf(value: unknown): { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
