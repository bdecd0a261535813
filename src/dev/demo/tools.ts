/** What the demo uses of the product. It is handed in, so that the development tools load no code of the mirror itself. */

export interface RunCounts {
  readonly toAdd: number;
  readonly toChange: number;
  readonly toRemove: number;
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
  readonly unchanged: number;
}

export interface RunProgress {
  readonly phase: string;
  readonly counts: RunCounts;
  /** Why the run is not moving, as a stable code; `null` while it moves. */
  readonly waiting: string | null;
}

export interface MirrorClient {
  /** Starts a run and follows it to its end. Rejects with the reason when it does not complete. */
  run(mirror: string, show: (progress: RunProgress) => void): Promise<RunCounts>;
}

export interface DemoTools {
  /** Brings the journal's schema up to date, as its owner. */
  migrate(options: { readonly ownerUrl: string }): Promise<unknown>;
  /** Connects to a Temporal server, `host:port`. */
  connect(address: string): Promise<MirrorClient>;
}
