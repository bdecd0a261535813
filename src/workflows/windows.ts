/** How long one activity may launch requests, before the workflow looks at what people have said meanwhile. */

/** Windows begin short, so that progress shows early, and grow, so that a long run costs few events. */
const FIRST_WINDOW_MS = 5_000;
export const LONGEST_WINDOW_MS = 60_000;

/** Length in ms of a step's window, counted from 0. */
export function windowMs(window: number): number {
  return Math.min(LONGEST_WINDOW_MS, FIRST_WINDOW_MS * 2 ** window);
}
