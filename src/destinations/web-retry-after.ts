/** The `Retry-After` header (RFC 9110, 10.2.3): seconds, or a date in one of the three forms of HTTP. */

/** A provider that asks for more is asked again after a day. */
export const LONGEST_RETRY_MS = 86_400_000;

const DATES = [
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/,
  /^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/,
];
const ASCTIME = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/;

/** Milliseconds from `now` until the provider wants to be asked again; `null` where it says nothing readable. */
export function retryAfterMs(header: string | undefined, now: number): number | null {
  const text = header?.trim() ?? '';
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, LONGEST_RETRY_MS);
  const date = dateMs(text);
  return date === null ? null : Math.min(Math.max(date - now, 0), LONGEST_RETRY_MS);
}

function dateMs(text: string): number | null {
  // Date.parse takes almost anything for a date, a negative number for one: the form is checked first.
  if (!DATES.some((form) => form.test(text)) && !ASCTIME.test(text)) return null;
  const ms = Date.parse(ASCTIME.test(text) ? `${text} GMT` : text);
  return Number.isNaN(ms) ? null : ms;
}
