/** Whether a run would arrive elsewhere than the one before it, as retl.moved decides (migrations/0002). */

import type { MovedCode } from '../domain/messages.ts';
import type { RouteHashes } from '../journal/admission.ts';

export function movedOf(before: RouteHashes | null, now: RouteHashes | null): MovedCode | null {
  if (before === null || now === null) return null;
  const sameCredentials = before.credentials.equals(now.credentials);
  if (before.removals.equals(now.removals)) return sameCredentials ? null : 'credentials-changed';
  return sameCredentials ? 'removals-moved' : 'route-changed';
}
