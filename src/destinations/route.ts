/** What decides where requests arrive, besides the target's key: asked about when it changes while members are held. */

/**
 * The first two are canonical texts: a run is parked before anything is sent where one of them is not what it was when the target was last sent
 * to (migrations/0002, retl.moved). The journal keeps their hashes only.
 */
export interface Route {
  /** By which credentials requests go, as the settings write it: secrets by reference, so that a rotation changes nothing. */
  readonly credentials: string;
  /** Where removals go. */
  readonly removals: string;
  /** Keys of other targets that removals would go into: where one is another mirror's, the run is refused. */
  readonly removesFrom: readonly string[];
}
