/** `metrics` of retl.yaml: where a worker's metrics go. */

import { z } from 'zod';
import { RetlError } from '../domain/errors.ts';
import type { MetricsSettings } from '../domain/settings.ts';
import { DURATION_WORDS, parseDuration } from './quantities.ts';
import { inProjectFile, resolveText, type SecretAccess } from './secrets.ts';

const REFERENCE = String.raw`^\$\{`;
/** An IPv4 or bracketed IPv6 address, and a port. */
const ADDRESS = String.raw`^(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:.]+\]):[1-9]\d{0,4}$`;
const URL_FORM = String.raw`^(?:https?|grpcs?):\/\/[^\s/]`;

const either = (form: string) => z.string().regex(new RegExp(`${form}|${REFERENCE}`));

const otelInput = z.strictObject({
  url: either(URL_FORM).describe(
    'URL of an OpenTelemetry collector, such as http://collector:4317, or http://collector:4318/v1/metrics with `http: true`',
  ),
  http: z
    .boolean()
    .meta({ description: 'true for OTLP over HTTP, false for OTLP over gRPC', default: false })
    .optional(),
  headers: z
    .record(z.string(), z.string())
    .describe('headers of each request to it, by name; secrets by reference')
    .optional(),
});

export const metricsInput = z
  .strictObject({
    prometheus: either(ADDRESS)
      .describe('IP address and port where the worker answers Prometheus, such as 127.0.0.1:9464')
      .optional(),
    otel: otelInput.describe('an OpenTelemetry collector: {url, http, headers}').optional(),
  })
  .refine((metrics) => metrics.prometheus === undefined || metrics.otel === undefined, {
    error: 'Metrics go to one place: `prometheus` and `otel` are both set.',
  })
  .meta({ maxProperties: 1 })
  .describe(
    'where workers’ metrics go: {prometheus: 127.0.0.1:9464} or {otel: {url}}; {} as where it is left out: nowhere',
  );

export function metricsSettings(input: z.infer<typeof metricsInput> | undefined): MetricsSettings {
  if (input?.prometheus !== undefined) return { kind: 'prometheus', address: input.prometheus };
  if (input?.otel === undefined) return { kind: 'off' };
  const { url, http = false, headers = {} } = input.otel;
  return { kind: 'otel', url, http, headers };
}

/** The word that turns metrics off for one worker. */
export const METRICS_OFF = 'off';

/**
 * Where one worker's metrics go, its references resolved.
 * @param said an address, or `off`, which goes before what retl.yaml says; empty or absent: nothing was said.
 * @throws RetlError `config.secret`, `metrics.address`, `metrics.otel`
 */
export function resolveMetrics(
  settings: MetricsSettings,
  { env, readFile }: SecretAccess,
  said?: string,
): MetricsSettings {
  if (said === METRICS_OFF) return { kind: 'off' };
  const resolve = (text: string, key: string) =>
    resolveText(text, env, readFile, inProjectFile(`metrics.${key}`));
  if (said || settings.kind === 'prometheus') {
    const address = said || (settings.kind === 'prometheus' ? resolve(settings.address, 'prometheus') : '');
    if (!isAddress(address)) throw new RetlError('metrics.address', { rule: 'no-address-and-port' });
    return { kind: 'prometheus', address };
  }
  if (settings.kind === 'off') return settings;
  const url = resolve(settings.url, 'otel.url');
  if (!new RegExp(URL_FORM).test(url)) throw new RetlError('metrics.otel', { rule: 'no-url' });
  const headers = Object.entries(settings.headers).map(([name, value]) => [
    name,
    resolve(value, `otel.headers.${name}`),
  ]);
  return { ...settings, url, headers: Object.fromEntries(headers) };
}

const LEAST_PACE_MS = 100;
const USUAL_PACE_MS = 15_000;

/** Milliseconds between two looks at the journal for metrics. @throws RetlError `metrics.pace` */
export function metricsPace(said: string | undefined): number {
  if (!said) return USUAL_PACE_MS;
  const ms = parseDuration(said);
  if (ms === null || ms < LEAST_PACE_MS) throw new RetlError('metrics.pace', { rule: DURATION_WORDS });
  return ms;
}

function isAddress(text: string): boolean {
  return new RegExp(ADDRESS).test(text) && Number(text.slice(text.lastIndexOf(':') + 1)) <= 65_535;
}
