/** The activities of the workflow `mirror`, bound to what the worker gives them. */

import { admitRun } from './admit.ts';
import { close, release } from './close.ts';
import { decideRun } from './decide.ts';
import { deliver } from './deliver.ts';
import type { Dependencies } from './deps.ts';
import { extract } from './extract.ts';
import { failing } from './failures.ts';
import { finishRun } from './finish.ts';
import { initRun } from './init.ts';
import { promoteRun } from './promote.ts';
import type {
  AdmitArgs,
  CloseArgs,
  DecideArgs,
  DeliverArgs,
  GuardArgs,
  ReleaseArgs,
  RunRef,
  StepArgs,
} from './results.ts';
import { guardRun, sealRun } from './seal.ts';

export function createActivities(deps: Dependencies) {
  const run = <T>(work: () => Promise<T>) => failing(deps.logger, work);
  return {
    admit: (args: AdmitArgs) =>
      failing(deps.logger, () => admitRun(deps, args), { searchAttributes: deps.searchAttributes }),
    init: (args: StepArgs) => run(() => initRun(deps, args)),
    extract: (ref: RunRef) => run(() => extract(deps, ref)),
    seal: (ref: RunRef) => run(() => sealRun(deps, ref)),
    guard: (args: GuardArgs) => run(() => guardRun(deps, args)),
    decide: (args: DecideArgs) => run(() => decideRun(deps, args)),
    deliver: (args: DeliverArgs) => run(() => deliver(deps, args)),
    finish: (args: StepArgs) => run(() => finishRun(deps, args)),
    promote: (ref: RunRef) => run(() => promoteRun(deps, ref)),
    close: (args: CloseArgs) => run(() => close(deps, args)),
    release: (args: ReleaseArgs) => run(() => release(deps, args)),
  };
}

export type Activities = ReturnType<typeof createActivities>;
