/** How a destination under the model's control answers a request. */

export type Answer =
  | { readonly kind: 'ok' }
  /** The answer is lost, after the request was applied or before. */
  | { readonly kind: 'lost'; readonly applied: boolean }
  /** Applied, and the adapter throws. */
  | { readonly kind: 'throws' }
  /** Applied; the reply lacks the last row, or the id of what was taken for later. */
  | { readonly kind: 'short' }
  /** Applied but for the row at this position (modulo their number). */
  | { readonly kind: 'reject'; readonly at: number }
  | { readonly kind: 'refuse' | 'later' | 'too-large' | 'misconfigured' };

export const OK: Answer = { kind: 'ok' };

export function applies(answer: Answer): boolean {
  if (answer.kind === 'lost') return answer.applied;
  return ['ok', 'throws', 'short', 'reject'].includes(answer.kind);
}
