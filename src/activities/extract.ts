/**
 * Extracts a candidate: the whole query, read once, validated, mapped and loaded, in one transaction of the journal. An
 * attempt that dies leaves nothing, and the next reads everything anew (rule 8). No row leaves this activity.
 */

import { identityHashInput } from '../domain/folding.ts';
import { compileMapping } from '../domain/mapping.ts';
import type { MappedRow } from '../domain/member.ts';
import { compileProjection } from '../domain/projection.ts';
import { payloadHashInput } from '../domain/request.ts';
import type { Column, RawRow } from '../domain/source-row.ts';
import { type CandidateSink, loadCandidate } from '../journal/candidate.ts';
import type { SourceSnapshot } from '../sources/port.ts';
import { goOn, type RunAttempt, withAttempt } from './attempt.ts';
import { type BoundDestination, bindDestination, bindSource, sha256Hex, sha256Latin1 } from './binding.ts';
import type { Dependencies } from './deps.ts';
import { payloadCheck } from './payloads.ts';
import type { RunRef, StepResult } from './results.ts';
import { RowFailures } from './row-failures.ts';

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
      const map = await compileRow(a, columns);
      const types = JSON.stringify(keyTypes(a.settings.source.key, columns));
      const destination = bindDestination(deps, a.settings);
      const fill = (sink: CandidateSink) => load(a, destination, rows, map, sink);
      await loadCandidate(deps.journal, a.attempt, types, fill, destination.writeForm);
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
  destination: BoundDestination,
  snapshot: SourceSnapshot,
  map: (row: RawRow) => MappedRow,
  sink: CandidateSink,
): Promise<void> {
  const fold = identityHashInput(destination.capabilities.identityFolding);
  const hashed = payloadHashInput(destination.writeForm);
  const validate = payloadCheck(destination);
  const failures = new RowFailures();
  const add = (row: RawRow): void => {
    const { sourceKey, members } = map(row);
    // After a first failure the rest is only counted.
    if (members.length === 0 && !failures.any) sink.addExcluded(sourceKey);
    let memberNo = 0;
    for (const m of members) {
      validate?.(m, sourceKey);
      if (failures.any) continue;
      sink.addMember(sourceKey, memberNo, {
        identityHash: sha256Latin1(fold(m.identity)),
        payloadHash: sha256Latin1(hashed(m.upsert)),
        identity: m.identity,
        upsert: m.upsert,
        remove: m.remove,
      });
      memberNo += 1;
    }
  };
  for await (const page of snapshot.pages()) {
    goOn(a);
    for (const row of page) {
      try {
        add(row);
      } catch (error) {
        failures.add(error);
      }
      // A row may give many members: what is full goes before the page ends.
      if (sink.full) await sink.drain();
    }
    await sink.drain();
  }
  failures.throwIfAny();
}

async function compileRow(a: RunAttempt, columns: readonly Column[]): Promise<(row: RawRow) => MappedRow> {
  const { mapping, source } = a.settings;
  if (mapping.kind === 'rules') return compileMapping(mapping.members, source.key, columns, sha256Hex);
  const projection = await a.deps.configuration.projection(mapping);
  return compileProjection(projection, source.key, columns, sha256Hex);
}

function keyTypes(key: readonly string[], columns: readonly Column[]): readonly string[] {
  return key.map((name) => columns.find((c) => c.name === name)?.typeName ?? '');
}
