/**
 * What would fail later, found before anything is uploaded: with an object of its own in `probe/`, which is written, refused
 * a second and a mistaken time, read, listed and deleted. The mirror's own objects are left alone.
 *
 * A store that ignores the conditions of a write (RFC 9110, If-Match and If-None-Match) cannot be fenced (rule 9), so it
 * is refused.
 */

import { randomUUID } from 'node:crypto';
import type { PreflightProblem } from '../port.ts';
import type { Bucket, Put } from './bucket.ts';
import type { Failure } from './failures.ts';
import type { Fence } from './fence.ts';
import type { Layout } from './manifest.ts';

const PROBE = Buffer.from('retl-mirror looks whether it may write here\n');
const TYPE = 'text/plain';
/** Looks like an ETag, and is none that an object of this content has. */
const NO_ETAG = '"00000000000000000000000000000000"';

export async function storeProblems(
  bucket: Bucket,
  layout: Layout,
  fence: Fence,
  owner: string,
): Promise<readonly PreflightProblem[]> {
  const seen = await fence.look();
  if (seen.kind !== 'found' && seen.kind !== 'absent') return [explained(seen, 'read')];
  // A check has no journal, and so no owner of its own to compare.
  if (seen.kind === 'found' && !owner.startsWith('check/') && !fence.mayTake(seen.manifest.writer.owner)) {
    return [OWNED];
  }
  return probe(bucket, `${layout.root}probe/${randomUUID()}`);
}

async function probe(bucket: Bucket, key: string): Promise<readonly PreflightProblem[]> {
  const first = await bucket.put(key, PROBE, TYPE, 'absent');
  if (first.kind === 'precondition') return [UNCONDITIONAL];
  if (first.kind !== 'stored') return [explained(first, 'write')];
  const conditions = await conditionProblems(bucket, key, first.etag);
  const listed = await bucket.list(key, null, false);
  const problems = [...conditions];
  if (listed.kind !== 'listed') problems.push(explained(asFailure(listed), 'list'));
  else if (listed.objects.length !== 1) problems.push(NOT_LISTED);
  const removed = await bucket.remove([key]);
  if (removed.kind !== 'removed') problems.push(explained(removed, 'delete'));
  return problems;
}

async function conditionProblems(
  bucket: Bucket,
  key: string,
  etag: string,
): Promise<readonly PreflightProblem[]> {
  const mistaken = await bucket.put(key, PROBE, TYPE, { etag: NO_ETAG });
  const again = await bucket.put(key, PROBE, TYPE, 'absent');
  const failures = [mistaken, again].filter(isFailure);
  const [failure] = failures;
  if (failure !== undefined) {
    return failure.code === 's3-not-implemented' ? [UNCONDITIONAL] : [explained(failure, 'write')];
  }
  if (mistaken.kind === 'stored' || again.kind === 'stored') return [UNCONDITIONAL];
  const right = await bucket.put(key, PROBE, TYPE, { etag });
  if (isFailure(right)) return [explained(right, 'write')];
  return right.kind === 'stored' ? [] : [UNCONDITIONAL];
}

function isFailure(done: Put | Failure): done is Failure {
  return done.kind !== 'stored' && done.kind !== 'precondition';
}

function asFailure(answer: Failure | { readonly kind: 'absent' }): Failure {
  return answer.kind === 'absent' ? { kind: 'unknown', code: 's3-no-such-key' } : answer;
}

const OWNED: PreflightProblem = {
  code: 'target-owned',
  message: 'The manifest belongs to another mirror or another journal.',
  remedy: 'Give this mirror a prefix of its own; where the other is gone for good, delete its manifest.',
};

const UNCONDITIONAL: PreflightProblem = {
  code: 'conditional-writes',
  message:
    'The store does not keep to If-Match and If-None-Match, so that a late writer could not be shut out.',
  remedy: 'Use a store, or a version of it, that has conditional writes.',
};

const NOT_LISTED: PreflightProblem = {
  code: 'listing-late',
  message: 'The store does not list an object that it has just written.',
  remedy: 'Use a store whose listings are consistent with its writes.',
};

type Right = 'read' | 'write' | 'list' | 'delete';

const RIGHTS: Readonly<Record<Right, string>> = {
  read: 's3:GetObject on the prefix, and s3:ListBucket, without which a missing object looks like a denied one',
  write: 's3:PutObject on the prefix',
  list: 's3:ListBucket on the bucket',
  delete: 's3:DeleteObject on the prefix',
};

const UNREACHABLE = {
  message: 'The store cannot be reached.',
  remedy: 'Check `endpoint`, `region`, the network, and whether the store is up.',
};

function explained(failure: Failure, right: Right): PreflightProblem {
  const { code } = failure;
  if (failure.kind !== 'misconfigured') return { code, ...UNREACHABLE, transient: true };
  if (code === 's3-access-denied') {
    return {
      code,
      message: `The credentials lack the right to ${right}.`,
      remedy: `Grant ${RIGHTS[right]}.`,
    };
  }
  return { code, ...(EXPLANATIONS[code] ?? OTHERWISE) };
}

const CREDENTIALS = {
  message: 'The store does not take these credentials.',
  remedy: 'Check access_key_id, secret_access_key and session_token, or what the SDK’s chain finds.',
};
const REGION = {
  message: 'The bucket is in another region, or under another address.',
  remedy: 'Set `region` (and `endpoint`) to the bucket’s own.',
};
const OTHERWISE = {
  message: 'The store refuses the request.',
  remedy: 'The code says why; check the options of the bucket, its policies and its encryption.',
};

const EXPLANATIONS: Readonly<Record<string, { readonly message: string; readonly remedy: string }>> = {
  's3-no-such-bucket': {
    message: 'There is no such bucket.',
    remedy: 'Create it, or check `bucket`, `endpoint` and `region`.',
  },
  's3-invalid-access-key-id': CREDENTIALS,
  's3-signature-does-not-match': CREDENTIALS,
  's3-expired-token': CREDENTIALS,
  's3-invalid-token': CREDENTIALS,
  'credentials-missing': CREDENTIALS,
  's3-permanent-redirect': REGION,
  's3-authorization-header-malformed': REGION,
  'http-301': REGION,
  'http-307': REGION,
  'tls-failed': {
    message: 'No verified TLS connection can be made.',
    remedy: 'Check the server’s certificate; for a private authority, give its certificate as `tls.ca`.',
  },
  'manifest-foreign': {
    message: 'The object manifest.json of this prefix is no manifest of this program.',
    remedy: 'Give the mirror a prefix of its own.',
  },
};
