/** The part of the table of error codes (errors.ts) that is about removals which would take somebody else away. */

import type { CodeInfo } from './code-info.ts';

export const REMOVAL_CODES = {
  'data.shared-removal': {
    meaning:
      'Two members of the snapshot have one removal payload: whoever removes one of them removes the other as well.',
    remedy:
      'Have `remove` of the mapping tell all members apart, as their identities do, or give those two one identity.',
    recourse: 'fix',
  },
  'data.removal-of-wanted': {
    meaning:
      'A member that is to be removed is one that the snapshot wants, as the destination takes them: under the mirror’s `identity_folding`, or because the same payload removes both. Nothing has been sent.',
    remedy:
      'Set back what was changed in how identities are written or folded (`identity_folding`, `normalize`, `as`, `remove`). To change it, let one run remove those members first: without them in the query, and with the settings that they were accepted with.',
    recourse: 'fix',
  },
  'run.removes-elsewhere': {
    meaning:
      'The mirror’s removals would go into the target of another mirror: `remove` has the address that the other one sends its members to. Nothing was sent.',
    remedy:
      'Give `remove` the address of this mirror’s own target; was the file copied? Where it is meant, say `separate_places: true` in `destination`.',
    recourse: 'fix',
  },
} as const satisfies { readonly [code: string]: CodeInfo };
