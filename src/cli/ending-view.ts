/** How a run ended, for people and programs, and the exit code that says the same. */

import type { Ending } from '../client/failure.ts';
import { assertNever } from '../domain/assert-never.ts';
import type { FailureType, MirrorResult } from '../domain/messages.ts';
import type { RunCounts } from '../domain/run.ts';
import { EXIT, type ExitCode, exitOfFailure, exitOfOutcome } from './exit-codes.ts';
import type { Output } from './output.ts';
import { whole } from './progress-view.ts';

const FAILED: { readonly [T in FailureType]: string } = {
  refused: 'refused',
  'guard-held': 'not approved; nobody was removed',
  rejected: 'stopped: the destination rejected members',
  invalid: 'stopped: configuration or data must be mended first',
  blocked: 'blocked: an outcome cannot be verified',
  unavailable: 'given up for now: retries are used up; the next run resumes it',
};

export function showEnding(output: Output, mirror: string, ending: Ending): ExitCode {
  switch (ending.kind) {
    case 'result':
      return showResult(output, mirror, ending.result);
    case 'failed': {
      const exit = exitOfFailure(ending.type);
      output.event({ event: 'ended', mirror, outcome: ending.type, message: ending.message, exitCode: exit });
      output.line(`${output.style('red', mirror)}: ${FAILED[ending.type]}`);
      output.line(`  ${ending.message}`);
      return exit;
    }
    case 'unexpected':
      output.event({
        event: 'ended',
        mirror,
        outcome: 'unexpected',
        type: ending.type,
        exitCode: EXIT.failure,
      });
      output.line(
        `${output.style('red', mirror)}: failed unexpectedly (${ending.type}); the worker’s log says more`,
      );
      return EXIT.failure;
    case 'cancelled':
      output.event({ event: 'ended', mirror, outcome: 'cancelled', exitCode: EXIT.stopped });
      output.line(`${output.style('yellow', mirror)}: cancelled; the next run resumes what was sealed`);
      return EXIT.stopped;
    case 'terminated':
    case 'timed-out':
      output.event({ event: 'ended', mirror, outcome: ending.kind, exitCode: EXIT.failure });
      output.line(
        `${output.style('red', mirror)}: the workflow was ${ending.kind}; the next run takes the run over`,
      );
      return EXIT.failure;
    default:
      return assertNever(ending);
  }
}

function showResult(output: Output, mirror: string, result: MirrorResult): ExitCode {
  const exit = exitOfOutcome(result.outcome);
  output.event({ event: 'ended', mirror, ...result, exitCode: exit });
  const late = result.abortTooLate ? ' (the abort came after the finish)' : '';
  const { rejected } = result.counts;
  const color = exit === EXIT.ok && rejected === 0 ? 'green' : 'yellow';
  output.line(`${output.style(color, mirror)}: ${result.outcome}${late}`);
  output.line(`  ${countsWords(result.counts)}`);
  // Only a run that tolerates rejections completes with some.
  if (result.outcome === 'completed' && rejected > 0)
    output.line(
      `  tolerated; the next run tries them again: \`retl rejections ${mirror} --run ${result.runId}\``,
    );
  return exit;
}

export function countsWords(counts: RunCounts): string {
  const parts = [
    `${whole(counts.added)} added`,
    `${whole(counts.changed)} changed`,
    `${whole(counts.removed)} removed`,
    `${whole(counts.unchanged)} unchanged${again(counts)}`,
  ];
  if (counts.rejected > 0) parts.push(`${whole(counts.rejected)} rejected`);
  if (counts.excluded > 0) parts.push(`${whole(counts.excluded)} rows left out`);
  return parts.join(', ');
}

/** Of the unchanged members, those that are sent again. */
function again({ toRefresh = 0, refreshed = 0 }: RunCounts): string {
  return toRefresh === 0 ? '' : ` (${whole(refreshed)} of ${whole(toRefresh)} sent again)`;
}
