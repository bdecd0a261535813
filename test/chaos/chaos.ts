/** The play: sources change, runs start, and everything is killed, cut, frozen or restarted, one thing after the other. */

import { setTimeout as sleep } from 'node:timers/promises';
import { INDEX_WORKFLOW } from '../../src/domain/index-messages.ts';
import { mirrorWorkflowId, TASK_QUEUE } from '../../src/domain/messages.ts';
import type { Servers } from '../support/servers.ts';
import type { System } from '../support/system.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';
import type { Crew } from './crew.ts';
import type { Dice } from './dice.ts';
import type { Lane } from './lane.ts';
import type { OpenRun, Operator } from './operator.ts';

/** How often each thing happens, against the others. */
const ACTS = {
  'source changes': 34,
  'runs by hand': 20,
  'lies stirred': 10,
  'workers killed': 2.6,
  'workers frozen': 1.2,
  'journal restarts': 0.3,
  'journal lines cut': 1.5,
  'journal unreachable': 0.4,
  'Temporal restarts': 0.25,
  'workflows terminated': 1,
  'workflows cancelled': 1,
  cancels: 1.2,
  aborts: 1.2,
  pauses: 1.2,
  polls: 1,
  resumes: 1,
  'destinations cut': 4,
  'destinations unreachable': 1.5,
  'destinations frozen': 1,
  'sources cut': 1.5,
  'second runs': 1,
  'commands that look': 0.5,
  'commands that control': 0.8,
  compactions: 0.4,
  'index builders stopped': 0.4,
  'index rebuilds': 0.25,
};
type Act = keyof typeof ACTS;

/** What a command says that cannot reach something. */
const AWAY = /journal\.unavailable|temporal\.|index\.unavailable|cannot be reached/;

export interface World {
  readonly system: System;
  readonly servers: Servers;
  readonly crew: Crew;
  readonly operator: Operator;
  readonly lanes: readonly Lane[];
  /** The line to the sources. */
  readonly source: TcpProxy;
  readonly indexes: readonly string[];
}

export class Chaos {
  readonly #busy = new Set<Promise<void>>();
  /** Servers that are away, or about to be. */
  readonly #away = new Set<string>();
  #hands = 0;
  /** Commands that failed for another reason than that something is away. */
  readonly surprises: string[] = [];

  constructor(
    private readonly world: World,
    private readonly dice: Dice,
    /** Told of everything that is done. */
    private readonly told: (act: string, what: string) => void,
  ) {}

  /** Plays until the time has come, and waits for everything that it has begun. */
  async play(ms: number): Promise<void> {
    const until = Date.now() + ms;
    while (Date.now() < until) {
      const act = this.dice.weighted(ACTS);
      const work = this.#do(act).catch((error: unknown) => {
        this.told(act, `could not be done: ${error instanceof Error ? error.message : String(error)}`);
      });
      const done = work.finally(() => this.#busy.delete(done));
      this.#busy.add(done);
      await sleep(this.dice.between(100, 700));
    }
    await Promise.all(this.#busy);
  }

  async #do(act: Act): Promise<void> {
    const { dice, world } = this;
    const lane = dice.pick(world.lanes);
    const note = (what: string): void => {
      world.operator.count(act);
      this.told(act, what);
    };
    switch (act) {
      case 'source changes':
        await lane.story.change();
        return note(lane.name);
      case 'runs by hand':
        return this.#startSome(note);
      case 'lies stirred':
        for (const one of world.lanes) one.stir();
        return note('');
      case 'workers killed':
      case 'workers frozen':
        return this.#hit(act, note);
      case 'journal restarts':
      case 'Temporal restarts':
        return this.#restart(act, note);
      case 'journal lines cut':
        world.system.proxy.cut();
        return note('');
      case 'journal unreachable':
        return this.#unreachable(note);
      case 'workflows terminated':
      case 'workflows cancelled':
      case 'cancels':
      case 'aborts':
      case 'pauses':
      case 'polls':
      case 'resumes':
        return this.#control(act, note);
      case 'destinations cut':
        lane.line?.cut();
        return note(lane.name);
      case 'destinations unreachable':
      case 'destinations frozen':
        return this.#line(act, lane, note);
      case 'sources cut':
        if (dice.chance(0.5)) world.source.cut();
        else world.source.cutAfter(dice.between(200, 3_000));
        await sleep(2_000);
        world.source.cutAfter(null);
        return note('');
      case 'second runs':
        this.#hands += 1;
        await this.start(lane.name, `second/${lane.name}-${this.#hands}`);
        return note(lane.name);
      default:
        return this.#command(act, lane, note);
    }
  }

  /** Mostly of a mirror that rests, or whose execution is gone: another would only be refused. */
  async #startSome(note: (what: string) => void): Promise<void> {
    const open = new Set((await this.world.operator.openRuns()).map(({ mirror }) => mirror));
    const resting = this.world.lanes.filter(({ name }) => !open.has(name) || this.dice.chance(0.3));
    if (resting.length === 0) return;
    const { name } = this.dice.pick(resting);
    await this.start(name);
    note(name);
  }

  /** Starts a run, where none is under way under this id. */
  async start(mirror: string, workflowId = mirrorWorkflowId(mirror)): Promise<void> {
    await this.world.lanes
      .find(({ name }) => name === mirror)
      ?.scene.start(workflowId, this.dice.chance(0.2) ? { approveUpTo: 60 } : {})
      .catch((error: unknown) => {
        if (!(error instanceof Error) || error.name !== 'WorkflowExecutionAlreadyStartedError') throw error;
      });
  }

  async #hit(act: Act, note: (what: string) => void): Promise<void> {
    const { crew } = this.world;
    const slot = this.dice.between(0, 1);
    const hit =
      act === 'workers killed'
        ? crew.kill(slot, this.dice.between(0, 3_000))
        : crew.freeze(slot, this.dice.between(2_000, 16_000), this.dice.chance(0.3));
    if (await hit) note(`worker ${slot + 1}`);
  }

  async #restart(act: 'journal restarts' | 'Temporal restarts', note: (what: string) => void): Promise<void> {
    if (this.#away.has(act)) return;
    this.#away.add(act);
    const power = this.dice.chance(0.7);
    const awayMs = this.dice.between(300, 5_000);
    const { servers } = this.world;
    try {
      if (act === 'journal restarts') await servers.restartJournal({ power, awayMs });
      else await servers.restartTemporal({ power, awayMs });
    } finally {
      this.#away.delete(act);
    }
    note(power ? 'by a power cut' : 'in order');
  }

  async #unreachable(note: (what: string) => void): Promise<void> {
    const { proxy } = this.world.system;
    proxy.refusing = true;
    proxy.cut();
    await sleep(this.dice.between(500, 8_000));
    proxy.refusing = false;
    note('');
  }

  async #line(act: Act, { name, line }: Lane, note: (what: string) => void): Promise<void> {
    if (line === null) return;
    if (act === 'destinations frozen') {
      line.freeze();
      await sleep(this.dice.between(500, 4_000));
      line.resume();
    } else {
      line.refuse(true);
      line.cut();
      await sleep(this.dice.between(500, 6_000));
      line.refuse(false);
    }
    note(name);
  }

  async #control(act: Act, note: (what: string) => void): Promise<void> {
    const run = await this.#someRun();
    if (run === null) return;
    const { operator, system } = this.world;
    const handle = system.temporal.client.workflow.getHandle(run.workflow);
    switch (act) {
      case 'workflows terminated':
        await handle.terminate('by the play');
        break;
      case 'workflows cancelled':
        await handle.cancel();
        break;
      case 'cancels':
        await operator.tell(run.workflow, 'cancel');
        break;
      case 'aborts':
        await operator.tell(run.workflow, 'abort');
        break;
      case 'polls':
        await operator.tell(run.workflow, 'poll');
        break;
      case 'pauses':
        await operator.tell(run.workflow, 'pause');
        await sleep(this.dice.between(500, 8_000));
        await operator.tell(run.workflow, 'resume');
        break;
      default:
        await operator.tell(run.workflow, 'resume');
    }
    note(run.mirror);
  }

  async #someRun(): Promise<OpenRun | null> {
    const runs = await this.world.operator.openRuns();
    return runs.length === 0 ? null : this.dice.pick(runs);
  }

  async #command(act: Act, { name }: Lane, note: (what: string) => void): Promise<void> {
    const { operator, indexes } = this.world;
    const args = ((): readonly string[] => {
      switch (act) {
        case 'compactions':
          return ['log', 'compact', '--before', '20s', '--yes'];
        case 'index rebuilds':
          return ['index', 'rebuild', this.dice.pick(indexes)];
        case 'index builders stopped':
          return ['index', 'stop', this.dice.pick(indexes)];
        case 'commands that control':
          return this.dice.pick([
            ['run', name, '--detach'],
            ['cancel', name, '--yes'],
            ['abort', name, '--yes'],
            ['poll', name],
            ['resume', name],
            ['reject', name, '--yes', '--because', 'it is not meant'],
          ]);
        default:
          return this.dice.pick([
            ['status'],
            ['runs'],
            ['plan', name],
            ['rejections', name],
            ['explain', name],
          ]);
      }
    })();
    if (this.#away.has('command')) return;
    this.#away.add('command');
    const { code, stderr } = await operator.retl(...args);
    this.#away.delete('command');
    note(`retl ${args.join(' ')}: ${code}${code === 1 ? ` ${stderr.slice(0, 300)}` : ''}`);
    if (code === 1 && !AWAY.test(stderr)) this.surprises.push(`retl ${args.join(' ')}: ${stderr}`);
    await this.follow();
  }

  /** Somebody sees to it that the indexes follow. */
  async follow(): Promise<void> {
    for (const index of this.world.indexes)
      await this.world.system.temporal.client.workflow
        .start(INDEX_WORKFLOW, { workflowId: `index/${index}`, taskQueue: TASK_QUEUE, args: [{ index }] })
        .catch(() => undefined);
  }
}
