/**
 * The settings of a mirror that a project may give defaults for: limits of requests, safety, the age of a snapshot, tags.
 * `mirrors/*.yaml` and `defaults` of retl.yaml hold the same schemas, so that both are judged alike.
 */

import { z } from 'zod';
import {
  DURATION_WORDS,
  parseShare,
  parseSize,
  SHARE_PATTERN,
  SHARE_WORDS,
  SIZE_PATTERN,
  SIZE_WORDS,
} from './quantities.ts';
import { durationFrom, quantity } from './quantity-schema.ts';

/** A tag: a word by which mirrors are chosen on the command line. */
export const TAG = /^[a-z0-9][a-z0-9_-]{0,62}$/;

export const DEFAULTS = {
  batch: { rows: 1000, bytes: '1MB', in_flight: 4, poll_deadline: '24h' },
  safety: { max_removals: '20%', empty_snapshot: 'hold', approval_deadline: '24h' },
  on_rejection: 'stop',
  resume_max_age: '24h',
} as const;

const [LEAST_BYTES, MOST_BYTES] = [1024, 256 * 1024 ** 2];

const size = z
  .union([
    z.int().min(LEAST_BYTES).max(MOST_BYTES),
    quantity(SIZE_PATTERN, parseSize, [LEAST_BYTES, MOST_BYTES], 'The size must be between 1KiB and 256MiB.'),
  ])
  .describe(SIZE_WORDS);

const duration = durationFrom(1000, '1s').describe(DURATION_WORDS);

const share = quantity(SHARE_PATTERN, parseShare, [0, 1], 'A share cannot be more than 100%.').describe(
  SHARE_WORDS,
);

const removalCount = z.int().min(0).describe('a whole number of members');

const maxRemovals = z
  .union([
    share,
    removalCount,
    z
      .strictObject({ share: share.optional(), count: removalCount.optional() })
      .refine((limits) => limits.share !== undefined || limits.count !== undefined, {
        error: 'Neither `share` nor `count` is set.',
      }),
  ])
  .describe('a share such as 20%, a whole number of members, or both as {share: 20%, count: 500}');

const REJECTION_WORDS =
  'stop, continue, or {tolerate: {max: 10}} with a number of members or a share such as 0.5%';

const onRejection = z.union([
  z.enum(['stop', 'continue']),
  z.strictObject({
    tolerate: z
      .strictObject({
        max: z
          .union([share, removalCount])
          .describe(
            'a whole number of members, or a share such as 0.5% of those that the run desires or removes',
          ),
      })
      .describe('the most members that may be rejected: {max: 10} or {max: 0.5%}'),
  }),
]);

const TAG_WORDS = 'lower-case letters, digits, `-` and `_`, at most 63, not beginning with `-` or `_`';

const tag = z.string().regex(TAG).describe(TAG_WORDS);

/** An empty list is a list: it stands against the project's default. */
export const tagsInput = z
  .union([tag, z.array(tag).max(64)])
  .describe(`words to choose mirrors by, each of ${TAG_WORDS}`);

/** What `defaults` and a mirror have in common, all of it optional. */
export const sections = {
  batch: z
    .strictObject({
      rows: z
        .int()
        .min(1)
        .max(100_000)
        .meta({ description: 'members in one request, at most: 1 to 100000', default: DEFAULTS.batch.rows })
        .optional(),
      bytes: size.meta({ description: SIZE_WORDS, default: DEFAULTS.batch.bytes }).optional(),
      in_flight: z
        .int()
        .min(1)
        .max(64)
        .meta({ description: 'requests under way at once: 1 to 64', default: DEFAULTS.batch.in_flight })
        .optional(),
      poll_deadline: duration
        .meta({
          description: `how long a job of the destination may take before the run asks for help: ${DURATION_WORDS}`,
          default: DEFAULTS.batch.poll_deadline,
        })
        .optional(),
    })
    .describe('limits of one request: {rows, bytes, in_flight, poll_deadline}')
    .optional(),
  safety: z
    .strictObject({
      max_removals: maxRemovals
        .meta({
          description: 'a share such as 20%, a whole number of members, or both as {share: 20%, count: 500}',
          default: DEFAULTS.safety.max_removals,
        })
        .optional(),
      empty_snapshot: z
        .enum(['hold', 'allow'])
        .meta({ description: 'hold or allow', default: DEFAULTS.safety.empty_snapshot })
        .optional(),
      approval_deadline: duration
        .meta({
          description: `how long a run that is held waits for an answer; then it counts as rejected: ${DURATION_WORDS}`,
          default: DEFAULTS.safety.approval_deadline,
        })
        .optional(),
    })
    .describe('what a run may remove without asking: {max_removals, empty_snapshot, approval_deadline}')
    .optional(),
  on_rejection: onRejection.meta({ description: REJECTION_WORDS, default: DEFAULTS.on_rejection }).optional(),
  refresh_after: duration
    .meta({
      description: `${DURATION_WORDS}, after which an unchanged member is sent again; never where left out`,
    })
    .optional(),
  resume_max_age: duration.meta({ description: DURATION_WORDS, default: DEFAULTS.resume_max_age }).optional(),
  tags: tagsInput.optional(),
};
