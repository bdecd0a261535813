/**
 * Extracts a candidate: the whole query, read once, validated, mapped and loaded, in one transaction of the journal. An
 * attempt that dies leaves nothing, and the next reads everything anew (rule 8). No row leaves this activity.
 */

import type { MappedRow } from '../domain/member.ts';
import type { RawRow } from '../domain/source-row.ts';
import { type CandidateSink, loadCandidate } from '../journal/candidate.ts';
import { RowFailures } from '../planning/row-failures.ts';
import { compileRow, keyTypes, type MemberForm, rowReader } from '../planning/row-reader.ts';
import type { SourceSnapshot } from '../sources/port.ts';
import { goOn, type RunAttempt, withAttempt } from './attempt.ts';
import { bindDestination, bindSource, memberForm } from './binding.ts';
import type { Dependencies } from './deps.ts';
import type { RunRef, StepResult } from './results.ts';

/** @throws RetlError `source.*`, `data.*`, JournalError */
export async function extract(deps: Dependencies, ref: RunRef): Promise<StepResult> {
  return withAttempt(deps, ref, 'extract', async (a) => {
    if (a.record.phase !== 'extract') return { kind: 'done', counts: await a.counts() };
    const source = bindSource(deps, a.settings);
    let snapshot: SourceSnapshot | null = null;
    try {
      snapshot = await source.adapter.open(source.connection, a.settings.source.query, a.stop);
      const { columns } = snapshot;
      const rows = snapshot;
      const map = await compileRow(a.settings, columns, deps.configuration.projection);
      const types = keyTypes(a.settings.source.key, columns);
      const form = memberForm(bindDestination(deps, a.settings));
      const fill = (sink: CandidateSink) => load(a, form, rows, map, sink);
      await loadCandidate(deps.journal, a.attempt, types, fill, form);
    } catch (error) {
      // Told to stop: the transaction is gone and nothing was kept; a later run reads the source anew.
      if (a.stop.aborted) return { kind: 'stopped', counts: await a.counts() };
      throw error;
    } finally {
      await snapshot?.close();
    }
    return { kind: 'done', counts: await a.counts() };
  });
}

async function load(
  a: RunAttempt,
  form: MemberForm,
  snapshot: SourceSnapshot,
  map: (row: RawRow) => MappedRow,
  sink: CandidateSink,
): Promise<void> {
  const failures = new RowFailures();
  const add = rowReader(map, form, sink, failures);
  for await (const page of snapshot.pages()) {
    goOn(a);
    a.deps.metrics.sourceRows(a.record.mirror, page.length);
    for (const row of page) {
      add(row);
      // A row may give many members: what is full goes before the page ends.
      if (sink.full) await sink.drain();
    }
    await sink.drain();
  }
  failures.throwIfAny();
}
