/**
 * Binds a mirror's settings for a plan as `admit`, `extract` and `seal` do for a run. No destination is called: of its adapter
 * only pure functions are used.
 */

import type { Plan } from '../domain/plan.ts';
import { largestPayloadAllowed } from '../domain/request.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import type { JournalPool } from '../journal/runs.ts';
import { makePlan } from '../planning/make-plan.ts';
import { bindDestination, bindSource, memberForm } from './binding.ts';
import type { Dependencies } from './deps.ts';

export interface PreviewOptions {
  /** The most members of each kind to show by their values; `null`: none. */
  readonly identities: number | null;
  readonly onProgress: (rows: number) => void;
}

/** @throws RetlError, JournalError */
export async function previewRun(
  deps: Pick<Dependencies, 'sources' | 'destinations' | 'configuration'>,
  journal: JournalPool,
  settings: MirrorSettings,
  options: PreviewOptions,
): Promise<Plan> {
  const destination = bindDestination(deps, settings);
  const source = bindSource(deps, settings);
  const largest = (action: 'upsert' | 'remove') =>
    largestPayloadAllowed(destination.adapter.frame(action, destination.options), destination.limits.bytes);
  return makePlan(journal, {
    settings,
    settingsText: deps.configuration.text(settings),
    targetKey: destination.targetKey,
    route: destination.route,
    removesFrom: destination.removesFrom,
    identityForm: destination.identityForm,
    form: memberForm(destination),
    limits: { upsert: largest('upsert'), remove: largest('remove') },
    openSource: () =>
      source.adapter.open(source.connection, settings.source.query, new AbortController().signal),
    projection: deps.configuration.projection,
    ...options,
  });
}
