/** Times of the log as indexes keep them. */

/** @param micros since 1970, UTC; within the years that a JavaScript date has */
export function timeText(micros: bigint): string {
  const text = new Date(Number(micros / 1000n)).toISOString();
  return `${text.slice(0, -1)}${(micros % 1000n).toString().padStart(3, '0')}Z`;
}
