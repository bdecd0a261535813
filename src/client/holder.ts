/** Asks Temporal about an execution by everything that names it: the cluster, the namespace, the id and the first run. */

import type { TemporalClient } from './connect.ts';
import { temporalFailure } from './failure.ts';

export interface HolderName {
  readonly namespace: string;
  /** Temporal's id of the cluster; `''` where it was not told. */
  readonly cluster: string;
  readonly workflowId: string;
  readonly firstRunId: string;
}

export type HolderState =
  | 'open'
  /** This cluster says that it is over, or knows nothing of it. */
  | 'closed'
  /** This is another cluster: what it says proves nothing. */
  | 'elsewhere';

/** Completed, failed, cancelled, terminated, timed out: by the numbers of the server's interface. */
const CLOSED: ReadonlySet<number> = new Set([2, 3, 4, 5, 7]);
/** gRPC's NOT_FOUND. */
const NOT_FOUND = 5;

/** @throws RetlError `temporal.connect` */
export async function askHolder({ client }: TemporalClient, holder: HolderName): Promise<HolderState> {
  const { namespace, cluster, workflowId, firstRunId } = holder;
  const { workflowService } = client.connection;
  try {
    const { clusterId } = await workflowService.getClusterInfo({});
    // A cluster that does not tell its id, or a holder that was not told it: an open execution is believed, absence is not.
    const isSure = (clusterId ?? '') !== '' && cluster !== '';
    if (isSure && clusterId !== cluster) return 'elsewhere';
    const absent = isSure ? 'closed' : 'elsewhere';
    const found = await workflowService
      .describeWorkflowExecution({ namespace, execution: { workflowId } })
      .catch((error: unknown) => {
        if (error instanceof Error && 'code' in error && error.code === NOT_FOUND) return null;
        throw error;
      });
    const info = found?.workflowExecutionInfo;
    if (info === undefined || info === null) return absent;
    const isIt = (info.firstRunId ?? '') === '' || info.firstRunId === firstRunId;
    if (!isIt) return absent;
    return CLOSED.has(info.status ?? 0) ? 'closed' : 'open';
  } catch (error) {
    throw temporalFailure(error, 'describe');
  }
}
