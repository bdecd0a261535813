/** What a reason code means to a person who must decide; adapters' codes are stable words. */

/** `null`: the code speaks for itself. */
export function reasonHint(code: string): string | null {
  if (code.startsWith('reply-'))
    return 'the destination answered, but its reply does not prove what became of each member: `outcomes` in the mirror’s file says how to read replies, for later runs';
  return null;
}
