/**
 * What is saved between the steps of one request (design.md section 3): the job's id before anything is put into it, so
 * that every later attempt finds the same job again.
 */

/** What a removal found for each of its operations, in their order: a record's ID, or what else it is. */
export type Target = string | { readonly gone: true } | { readonly rejected: string };

export interface Progress {
  readonly job: string;
  /** `created`: no word to begin has been given; `uploaded`: it may have been. */
  readonly step: 'created' | 'uploaded';
  /** Of a removal; `null`: an upsert, whose rows name themselves. */
  readonly targets: readonly Target[] | null;
}

export function writeProgress({ job, step, targets }: Progress): string {
  return JSON.stringify({ job, step, targets });
}

/** @throws Error where it is not what {@link writeProgress} has written. */
export function readProgress(saved: string | null | undefined): Progress | null {
  if (saved === null || saved === undefined) return null;
  const value: unknown = JSON.parse(saved);
  if (
    typeof value !== 'object' ||
    value === null ||
    !('job' in value) ||
    !('step' in value) ||
    !('targets' in value)
  )
    throw new Error('the saved progress is not of this adapter');
  const { job, step, targets } = value;
  if (typeof job !== 'string' || (step !== 'created' && step !== 'uploaded'))
    throw new Error('the saved progress is not of this adapter');
  return { job, step, targets: Array.isArray(targets) ? targets.map(readTarget) : null };
}

function readTarget(value: unknown): Target {
  if (typeof value === 'string') return value;
  if (typeof value === 'object' && value !== null && 'rejected' in value)
    return { rejected: String(value.rejected) };
  return { gone: true };
}
