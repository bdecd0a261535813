/** The error codes of a worker's metrics. */

import type { CodeInfo } from './code-info.ts';

export const METRICS_CODES = {
  'metrics.address': {
    meaning:
      'The worker cannot answer scrapes on the address of `metrics.prometheus`; the rule in the details says why.',
    remedy:
      'Stop what listens there, or give this worker another with `retl worker --metrics <address:port>` (RETL_METRICS), or `off`.',
    recourse: 'fix',
  },
  'metrics.otel': {
    meaning:
      'The exporter to the OpenTelemetry collector cannot be started with the settings of `metrics.otel`.',
    remedy: 'Check `url`, `http` and `headers` against docs/metrics.md.',
    recourse: 'fix',
  },
} as const satisfies { readonly [code: string]: CodeInfo };
