/** What goes wrong in a history, and when: a fault waits for a number of points, which statements and requests pass. */

/** What may happen at a point: just before, or just after, a statement or a request. */
export type FaultKind =
  /** The worker dies; Temporal gives its activity to another one. */
  | 'kill'
  /** The worker stands still past its heartbeat, and goes on later. */
  | 'freeze'
  /** The connection to the journal is lost; the worker lives. */
  | 'drop'
  /** The activity is told to stop, and is called again. */
  | 'stop'
  | 'cancel'
  | 'abort'
  /** The worker dies and its workflow is terminated. */
  | 'terminate';

export interface Fault {
  /** Points that pass before it. */
  readonly after: number;
  /** Part of the names of the points that count; absent: all do. */
  readonly at?: string;
  readonly kind: FaultKind;
}

export class Faults {
  #next = 0;
  #passed = 0;

  constructor(private readonly list: readonly Fault[]) {}

  /**
   * Passes a point, `before` or `after` a statement, or where a request `leaves` or is `answered`. `allowed` says what may
   * happen there, and what may not happen waits for the next point.
   */
  pass(name: string, allowed: (kind: FaultKind) => boolean): FaultKind | null {
    const fault = this.list[this.#next];
    if (fault === undefined || !name.includes(fault.at ?? '')) return null;
    this.#passed += 1;
    if (this.#passed <= fault.after || !allowed(fault.kind)) return null;
    this.#next += 1;
    this.#passed = 0;
    return fault.kind;
  }

  /** Nothing happens any more. */
  end(): void {
    this.#next = this.list.length;
  }
}
