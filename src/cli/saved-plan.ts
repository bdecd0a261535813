/**
 * A saved plan: what `retl plan --out` writes and `retl run --plan` holds a run to. Counts and hashes, no values; whoever runs
 * it sends exactly the set that was looked at, or nothing.
 */

import { hash } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { loadMirror } from '../config/load.ts';
import { settingsText } from '../config/settings-text.ts';
import { canonicalJson } from '../domain/canonical-json.ts';
import { RetlError } from '../domain/errors.ts';
import { MIRROR_NAME, type PlanRef } from '../domain/messages.ts';
import type { Plan } from '../domain/plan.ts';
import type { Project } from './environment.ts';
import { EXIT } from './exit-codes.ts';
import { InvalidProject, Refusal } from './failures.ts';

const FORMAT = 1;

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);
const count = z.int().min(0);

const contents = z.strictObject({
  kind: z.literal('retl-plan'),
  format: z.literal(FORMAT),
  mirror: z.string().regex(MIRROR_NAME),
  targetKey: z.string(),
  settingsDigest: digest,
  /** Of the desired set, as the seal computes it. */
  generation: digest,
  removals: count,
  removalDigest: digest,
  counts: z.strictObject({
    sourceRows: count,
    excluded: count,
    collapsed: count,
    members: count,
    held: count,
    added: count,
    changed: count,
    removed: count,
    unchanged: count,
    refreshed: count.exactOptional(),
  }),
  madeAt: z.iso.datetime(),
});
type Contents = z.infer<typeof contents>;
const saved = contents.extend({ digest });

/**
 * Writes the plan, readable by its owner alone.
 * @throws Refusal `plan-open-run`, `plan-not-written`
 */
export async function savePlan(plan: Plan, file: string, now: Date): Promise<void> {
  if (plan.snapshot === null)
    throw new Refusal(
      EXIT.refused,
      'plan-open-run',
      `Run ${plan.openRun?.runId ?? ''} of ${plan.mirror} goes on first; what a fresh run would send is not known yet.`,
      `Let it complete with \`retl run ${plan.mirror}\`, or give it up with \`retl abort ${plan.mirror}\`, then plan again.`,
    );
  const { counts, digests } = plan.snapshot;
  const body: Contents = {
    kind: 'retl-plan',
    format: FORMAT,
    mirror: plan.mirror,
    targetKey: plan.targetKey,
    settingsDigest: plan.settingsDigest,
    generation: digests.generation,
    removals: counts.removed,
    removalDigest: digests.removals,
    counts,
    madeAt: now.toISOString(),
  };
  await writeWhole(file, `${JSON.stringify({ ...body, digest: digestOf(body) }, null, 2)}\n`);
}

/** Beside it first, so that there is a whole file or none, whatever was there before. */
async function writeWhole(file: string, text: string): Promise<void> {
  const made = `${file}.${process.pid}.tmp`;
  try {
    await writeFile(made, text, { mode: 0o600, flag: 'wx' });
    await rename(made, file);
  } catch (error) {
    await rm(made, { force: true });
    throw new Refusal(
      EXIT.usage,
      'plan-not-written',
      `The plan cannot be written to ${file} (${codeOf(error)}).`,
      'Name a file in a folder that may be written to.',
    );
  }
}

function digestOf(body: Contents): string {
  return `sha256:${hash('sha256', canonicalJson(body), 'hex')}`;
}

/**
 * What the saved plan binds a run of `mirror` to.
 * @throws Refusal `plan-unreadable`, `plan-format`, `plan-edited`, `plan-mirror`, `plan-settings`; InvalidProject; RetlError
 */
export async function readPlan(project: Project, mirror: string, file: string): Promise<PlanRef> {
  const plan = parsed(file, await textOf(file));
  if (plan.mirror !== mirror)
    throw refused(
      'plan-mirror',
      `${file} is a plan of ${plan.mirror}, not of ${mirror}.`,
      'Name its mirror.',
    );
  if (plan.settingsDigest !== (await settingsDigest(project, mirror)))
    throw refused(
      'plan-settings',
      `The mirror’s settings are not those that ${file} was made with.`,
      'Plan again with the settings as they are now.',
    );
  const { generation, removals, removalDigest } = plan;
  return { generation, removals, removalDigest };
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw refused(
      'plan-unreadable',
      `The plan ${file} cannot be read (${codeOf(error)}).`,
      'Name a file that `retl plan --out` wrote.',
    );
  }
}

function parsed(file: string, text: string): Contents {
  const value = json(text);
  const head = z.looseObject({ kind: z.literal('retl-plan'), format: z.number() }).safeParse(value);
  if (!head.success)
    throw refused(
      'plan-unreadable',
      `${file} is no saved plan.`,
      'Name a file that `retl plan --out` wrote.',
    );
  if (head.data.format !== FORMAT)
    throw refused(
      'plan-format',
      `${file} has format ${head.data.format}; this release reads format ${FORMAT}.`,
      'Plan again with the release that runs.',
    );
  const result = saved.safeParse(value);
  const places = result.success ? [] : result.error.issues.map((issue) => issue.path.join('.') || 'file');
  if (result.success) {
    const { digest: written, ...body } = result.data;
    if (written === digestOf(body) && body.removals === body.counts.removed) return body;
  }
  const where = places.length === 0 ? '' : ` (${[...new Set(places)].join(', ')})`;
  throw refused(
    'plan-edited',
    `${file} is not as it was written${where}.`,
    'Plan again; a saved plan is not edited.',
  );
}

/** Of the settings as they are configured here. */
async function settingsDigest(project: Project, mirror: string): Promise<string> {
  const loaded = await loadMirror(project.dir, mirror, null, null, project.environment);
  if (loaded.kind === 'invalid') throw new InvalidProject(loaded.problems);
  const [settings] = loaded.settings.mirrors;
  if (settings === undefined) throw new RetlError('config.unknown-mirror', { mirror });
  return `sha256:${hash('sha256', settingsText(settings), 'hex')}`;
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A system's own code, such as ENOENT. */
function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'failed';
}

function refused(code: string, message: string, remedy: string): Refusal {
  return new Refusal(EXIT.usage, code, message, remedy);
}
