/** One mirror of the play: its source, its destination, and what can be known of both by looking at them alone. */

import { Scene } from '../support/system-scene.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';
import type { Contents, Story } from './story.ts';

/** A batch that waits for somebody. */
export interface OpenBatch {
  /** `sha256:` and 64 hex digits: the idempotency key as well. */
  readonly id: string;
  readonly action: string;
  readonly jobs: readonly string[];
}

/** Something that happened to one member at the destination. */
export interface Seen {
  /** The batch that asked for it, where the destination has kept its key. */
  readonly key: string | null;
  readonly action: 'upsert' | 'remove' | 'finish';
  /** Of the member; of a finish: nothing. */
  readonly id: string;
  readonly plan: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly byHand?: boolean;
}

export interface Lane {
  readonly name: string;
  readonly kind: string;
  readonly scene: LaneScene;
  readonly story: Story;
  /** A mirror whose destination shows nothing before the finish is only ever seen whole. */
  readonly whole: boolean;
  /** Whether a second copy of a request would do harm. */
  readonly once: boolean;
  /** Whether what is unknown is sent again, so that nobody waits for a send deadline. */
  readonly repeats: boolean;
  /** The line to the destination. */
  readonly line: TcpProxy | null;
  readonly schedule: boolean;
  /** What the destination holds, to whoever reads it directly; `null`: nothing was ever published. */
  held(): Promise<Contents | null>;
  /** Effects from the given number on, in their order. */
  effects(from: number): Promise<readonly Seen[]>;
  /** How much it lies, from 0 to 1; how much trouble there was. */
  lie(share: number): void;
  lies(): number;
  /** Does something at random to the destination. */
  stir(): void;
  /** Everything that is broken at the destination is repaired. */
  mend(): Promise<void>;
  /** What became of a batch, made definite by whoever can look at the destination; `null`: it must be found out without help. */
  settle(batch: OpenBatch): 'accepted' | 'not-applied' | null;
  /** What the destination itself found wrong with the requests. */
  offences(): readonly string[];
}

/** Section of a mirror that also runs by itself. */
export const OFTEN = { schedule: { every: '12s' } };

export class LaneScene extends Scene {
  /** Keys of the mirror's file beyond those of every lane. */
  async configure(destination: object, mirror: { readonly [section: string]: unknown }): Promise<void> {
    await this.write(destination, {
      mirror: {
        members: [
          {
            identity: { id: 'id' },
            payload: { plan: 'plan' },
            when: { column: 'plan', is: 'not_null' },
          },
        ],
        batch: { rows: 6, in_flight: 2, poll_deadline: '25s' },
        safety: { max_removals: '40%', empty_snapshot: 'hold', approval_deadline: '90s' },
        resume_max_age: '3m',
        ...mirror,
      },
    });
  }
}
