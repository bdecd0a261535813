/**
 * Builders of an index that are processes of their own (`--index follow`, what `retl index run --once` starts), killed or frozen
 * at an exact statement, and what must hold once somebody has gone on after them.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'vitest';
import { workerCommandLine } from '../../src/cli/worker-process.ts';
import { rebuild } from '../../src/indexing/rebuild.ts';
import { verifyCheckpoints } from '../../src/indexing/verify-checkpoints.ts';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { journalArtifacts } from '../../src/journal/artifacts.ts';
import { IndexScene, rows, SCHEMA } from './index-scene.ts';
import { createTestProject, type TestProject } from './project.ts';
import { type Hold, JournalProxy } from './system-journal-proxy.ts';

/** `anew`: beside a live build that somebody has had rebuilt. */
export type Beginning = 'nothing' | 'anew';

export interface Kill {
  readonly at: string;
  readonly from: Beginning;
  readonly hold: Hold;
  /** Changes wait beside the build's rows by then; the log grows before the next one goes on. */
  readonly waits?: true;
}

/** The checkpoint at the beginning of the log is the first of a build, that of its first page the second. */
const PAGE = 2;
const ROWS_IN = `update "${SCHEMA}".index_build set rows`;

/** In the order in which a builder comes to them. */
export const KILLS: readonly Kill[] = [
  { at: 'a build registered and not begun', from: 'nothing', hold: unanswered('retl.begin_index_build(') },
  {
    at: 'a build begun without a table',
    from: 'nothing',
    hold: unanswered(`insert into "${SCHEMA}".index_`),
  },
  { at: 'no checkpoint yet', from: 'nothing', hold: unseen(ROWS_IN) },
  { at: 'keys being made', from: 'nothing', hold: unanswered('add primary key') },
  { at: 'changes being set aside', from: 'nothing', hold: unanswered('_late (target_id, mirror') },
  { at: 'before the artifact', from: 'nothing', hold: unseen('retl.put_artifact(', PAGE) },
  { at: 'after the artifact', from: 'nothing', hold: unanswered('retl.put_artifact(', PAGE) },
  { at: 'in the transaction', from: 'nothing', hold: unanswered(ROWS_IN, PAGE) },
  {
    at: 'committed, not registered',
    from: 'nothing',
    hold: unseen('retl.put_checkpoint(', PAGE),
    waits: true,
  },
  { at: 'registered', from: 'nothing', hold: unanswered('retl.put_checkpoint(', PAGE) },
  { at: 'changes becoming rows', from: 'anew', hold: unanswered('with touched as'), waits: true },
  { at: 'promoting the first', from: 'nothing', hold: unanswered('create or replace view') },
  { at: 'promoting another', from: 'anew', hold: unanswered('create or replace view') },
  { at: 'promoted, the old one still there', from: 'anew', hold: unseen('drop table if exists') },
  { at: 'dropping the old one', from: 'anew', hold: unanswered('drop table if exists') },
];

function unseen(statement: string, nth = 1): Hold {
  return { statement, how: 'unseen', nth };
}

function unanswered(statement: string, nth = 1): Hold {
  return { statement, how: 'unanswered', nth };
}

export class KilledBuilders {
  private constructor(
    readonly scene: IndexScene,
    private readonly project: TestProject,
  ) {}

  static async open(names: readonly string[]): Promise<KilledBuilders> {
    const scene = await IndexScene.open();
    await scene.history(['a', 'b']);
    const indexes = Object.fromEntries(names.map((name) => [name, { kind: 'membership-search' }]));
    const journal = { url: `\${env:JOURNAL_URL}` };
    const project = await createTestProject({ 'retl.yaml': { journal, connections: {}, indexes } });
    return new KilledBuilders(scene, project);
  }

  async close(): Promise<void> {
    await this.scene.close();
    await this.project.remove();
  }

  /** A builder whose statements go through a proxy of its own. */
  async builder(index: string) {
    const url = new URL(this.scene.journal.runtimeUrl);
    const proxy = await JournalProxy.start({ host: url.hostname, port: Number(url.port) });
    url.hostname = '127.0.0.1';
    url.port = String(proxy.port);
    const start = () => {
      const args = workerCommandLine(['--project', this.project.folder, '--index', 'follow', index]);
      const child = spawn(process.execPath, args, {
        env: { ...process.env, JOURNAL_URL: url.href },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let said = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
      return { child, ended: once(child, 'close').then(() => said) };
    };
    return { proxy, start };
  }

  async begin(index: string, from: Beginning): Promise<void> {
    if (from === 'nothing') return;
    const indexer = this.scene.indexer(index);
    await this.scene.follow(indexer);
    await rebuild(this.scene.deps(), indexer);
    await this.scene.release(indexer);
  }

  /** A builder comes to the statement, dies there, and another one goes on. */
  async kill(index: string, { from, hold, waits }: Kill): Promise<void> {
    await this.begin(index, from);
    const { proxy, start } = await this.builder(index);
    const held = proxy.hold(hold);
    const { child, ended } = start();
    await held.reached;
    child.kill('SIGKILL');
    await ended;
    await proxy.close();
    if (waits === true) await this.#changesWait(index);
    await this.goesOn(index);
  }

  async #changesWait(index: string): Promise<void> {
    const { rows: found } = await this.scene.journal.admin.query(
      `select late > 0 as counted, to_regclass('${SCHEMA}.rows_' || table_id || '_late') is not null as kept
       from ${SCHEMA}.index_build where index_name = $1 and state = 'building'`,
      [index],
    );
    expect(found, index).toEqual([{ counted: true, kept: true }]);
    await this.scene.run('b', [...rows(2, 9, `${index}-waits`), ...rows(12, 40, '3')]);
  }

  /** What anybody finds who goes on: the log's rows and nothing else, checkpoints without a fault, and no table of the dead. */
  async goesOn(index: string): Promise<void> {
    const { scene } = this;
    const indexer = scene.indexer(index);
    expect(await scene.follow(indexer), index).toMatchObject({ kind: 'caught-up', state: 'live' });
    await this.isTheLogs(index);
    await scene.run('a', [...rows(0, 4, index), ...rows(8, 30, '3')]);
    await scene.follow(indexer);
    await this.isTheLogs(index);
    await scene.release(indexer);
  }

  async isTheLogs(index: string): Promise<void> {
    const { scene } = this;
    const { admin, runtime } = scene.journal;
    const indexer = scene.indexer(index);
    const same = { kind: 'compared', missing: 0n, unexpected: 0n };
    expect(await verifyIndex(scene.deps(), indexer), index).toMatchObject(same);
    expect(await scene.shown(index), index).toBe(await scene.expected());
    const { faults, checked } = await verifyCheckpoints(runtime, journalArtifacts(runtime), index);
    expect(faults, index).toEqual([]);
    expect(checked, index).toBeGreaterThan(0);
    const { rows: tables } = await admin.query(
      `select b.state from ${SCHEMA}.index_build b
       join pg_tables t on t.tablename in ('rows_' || b.table_id, 'rows_' || b.table_id || '_late')
       where t.schemaname = $1 and b.index_name = $2`,
      [SCHEMA, index],
    );
    expect(tables, index).toEqual([{ state: 'live' }]);
    await scene.release(indexer);
  }
}
