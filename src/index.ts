/**
 * What is public, for programs beside the command line: the types of a mapping in TypeScript, the port and the
 * conformance kit for adapters of one's own, a worker that runs them, a client that starts, watches and signals runs, and
 * the error codes. Everything else may change in any release.
 *
 * A mapping needs types only: `import type { MirrorProjection } from 'retl-mirror'` loads nothing.
 */

// A client: starts runs, watches them, talks to them, answers parked ones. It needs Temporal alone, and no journal.
export { type AnswerResult, answerParked } from './client/answer.ts';
export { connectClient, type TemporalClient } from './client/connect.ts';
export { type SignalResult, signalMirror } from './client/control.ts';
export { describeHolder, type HolderDescription } from './client/describe.ts';
export type { Ending } from './client/failure.ts';
// Schedules: what `retl schedules` does, for programs (docs/schedules.md).
export type { ScheduleChange, ScheduleOwner } from './client/schedule-change.ts';
export {
  outcomeOf,
  type ScheduledOutcome,
  type TriggerResult,
  triggerSchedule,
} from './client/schedule-runs.ts';
export {
  type ApplyOptions,
  applySchedule,
  deleteSchedule,
  pauseSchedule,
  readSchedule,
  resumeSchedule,
  type Schedule,
  type ScheduleCounts,
  type ScheduledStart,
  scheduledMirrors,
} from './client/schedules.ts';
export { type Execution, type StartOptions, type StartResult, startMirror } from './client/start.ts';
export { readProgress, type WatchEvent, type WatchOptions, watchRun } from './client/watch.ts';
// A mirror in TypeScript: `export default defineMirror({…})` in mirrors/<name>.ts (docs/configuration.md).
export { defineMirror, type MirrorDefinition } from './config/define-mirror.ts';
// A destination of one's own: the port, and the kit that tries an adapter on a misbehaving target
// (docs/writing-an-adapter.md).
export {
  type ConformanceCheck,
  type ConformanceFault,
  type ConformanceHarness,
  conformanceChecks,
  type Target,
} from './destinations/conformance.ts';
export type {
  AcceptedUpload,
  Action,
  BatchOutcome,
  BatchRequest,
  Capabilities,
  DestinationAdapter,
  EmptyCheck,
  FinishRequest,
  Logger,
  MappedFields,
  Operation,
  OperationOutcome,
  PollOutcome,
  PreflightProblem,
  ReasonCode,
  Receipt,
  RequestFrame,
  StepFound,
  StepOutcome,
  Store,
  Tidied,
  Writer,
  WriterContext,
} from './destinations/port.ts';
export type { Route } from './destinations/route.ts';
// Errors: one table of codes, each with its meaning, its remedy and what a caller may do about it.
export {
  ERROR_CODES,
  type ErrorCode,
  type ErrorDetails,
  type Recourse,
  RetlError,
} from './domain/errors.ts';
export type { BatchId, Epoch } from './domain/ids.ts';
// A mapping in TypeScript: `mapping: {module: ./vip.ts}` (docs/mapping.md).
export {
  type JsonObject,
  MAX_MEMBERS_PER_ROW,
  type Member,
  type MirrorProjection,
} from './domain/member.ts';
export {
  type Decision,
  type FailureType,
  type GuardCode,
  MIRROR_WORKFLOW,
  type MirrorInput,
  type MirrorResult,
  type MovedCode,
  mirrorWorkflowId,
  type Outcome,
  type Parked,
  type PlanRef,
  PROGRESS_QUERY,
  type Progress,
  SIGNALS,
  type SignalName,
  TASK_QUEUE,
  UPDATES,
  type UpdateName,
  type Waiting,
} from './domain/messages.ts';
// What `retl plan --json` prints (docs/plan.md).
export type {
  FieldChange,
  OpenRunPlan,
  Plan,
  PlanCounts,
  PlanDigests,
  PlanGuard,
  PlanIdentities,
  SnapshotPlan,
  TargetStanding,
} from './domain/plan.ts';
export type { Phase, RunCounts } from './domain/run.ts';
export type { ScheduleForm, ScheduleSettings } from './domain/schedule.ts';
export type { TemporalSettings } from './domain/settings.ts';
export type { SourceRow, SourceValue } from './domain/source-row.ts';
// A worker that knows that destination: `runWorker({projectDir, destinations: [...DESTINATIONS, mine], logger}, ready)`.
export { runWorker } from './worker.ts';
export { DESTINATIONS, type WorkerSetup } from './worker-setup.ts';
