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
  'metrics.pace': {
    meaning: 'What RETL_METRICS_EVERY says is no duration, or less than 100ms.',
    remedy: 'Give it a duration such as 15s or 1m, or leave it out.',
    recourse: 'fix',
  },
} as const satisfies { readonly [code: string]: CodeInfo };
