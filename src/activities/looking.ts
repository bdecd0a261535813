/** What a writer is opened with that only looks: it has no store, no journal and no fence, and whatever would write is a bug. */

import type { WriterContext } from '../destinations/port.ts';
import { epoch } from '../domain/ids.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import { fieldsOf } from './attempt.ts';
import type { Dependencies } from './deps.ts';

export function lookingContext(
  { logger }: Pick<Dependencies, 'logger'>,
  settings: MirrorSettings,
  signal: AbortSignal,
): WriterContext {
  const refuse = () => {
    throw new Error('who only looks does not write');
  };
  return {
    signal,
    logger,
    store: { get: () => undefined, set: refuse, delete: refuse },
    epoch: epoch(1n),
    owner: `check/${settings.mirror}`,
    ...fieldsOf(settings),
    progress: async () => refuse(),
    now: () => Date.now(),
  };
}
