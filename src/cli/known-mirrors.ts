/** The mirrors of this folder, to catch a mistyped name before anything is asked of Temporal. */

import { mirrorFiles } from '../config/mirror-files.ts';
import { nearest } from '../config/nearest.ts';
import { RetlError } from '../domain/errors.ts';
import type { Project } from './environment.ts';

/**
 * The worker's configuration has the last word, and may be elsewhere: a folder without mirrors refuses nothing.
 * @throws RetlError `config.unknown-mirror`
 */
export async function requireKnown(project: Project, mirror: string): Promise<void> {
  const { found } = await mirrorFiles(project.dir);
  const names = found.map((file) => file.mirror);
  if (names.length === 0 || names.includes(mirror)) return;
  const meant = nearest(mirror, names);
  throw new RetlError('config.unknown-mirror', {
    mirror,
    ...(meant === null ? {} : { 'did you mean': meant }),
    known: names,
  });
}
