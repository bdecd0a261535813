/** What an adapter answers, or the lack of an answer: foreseen results are returned, so that throwing is a bug of the adapter. */

/** A writer that throws has answered nothing: the outcome is unknown, and never sent again blindly (rule 3). */
export async function answered<Outcome>(
  call: () => Promise<Outcome>,
): Promise<Outcome | { readonly kind: 'unknown'; readonly code: string }> {
  try {
    return await call();
  } catch {
    return { kind: 'unknown', code: 'adapter-threw' };
  }
}
