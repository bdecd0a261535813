/** The activities of the workflow `mirror`, bound to what the worker gives them. */

import { admitRun } from './admit.ts';
import { close, release } from './close.ts';
import { deliver } from './deliver.ts';
import type { Dependencies } from './deps.ts';
import { extract } from './extract.ts';
import { failing } from './failures.ts';
import { finishRun } from './finish.ts';
import { initRun } from './init.ts';
import { promoteRun } from './promote.ts';
import type { AdmitArgs, CloseArgs, DeliverArgs, ReleaseArgs, RunRef } from './results.ts';
import { guardRun, sealRun } from './seal.ts';

export function createActivities(deps: Dependencies) {
  return {
    admit: (args: AdmitArgs) => failing(() => admitRun(deps, args)),
    init: (ref: RunRef) => failing(() => initRun(deps, ref)),
    extract: (ref: RunRef) => failing(() => extract(deps, ref)),
    seal: (ref: RunRef) => failing(() => sealRun(deps, ref)),
    guard: (ref: RunRef) => failing(() => guardRun(deps, ref)),
    deliver: (args: DeliverArgs) => failing(() => deliver(deps, args)),
    finish: (ref: RunRef) => failing(() => finishRun(deps, ref)),
    promote: (ref: RunRef) => failing(() => promoteRun(deps, ref)),
    close: (args: CloseArgs) => failing(() => close(deps, args)),
    release: (args: ReleaseArgs) => failing(() => release(deps, args)),
  };
}

export type Activities = ReturnType<typeof createActivities>;
