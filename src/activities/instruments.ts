/** The instruments of the metrics (domain/metrics.ts), on a meter of Temporal's SDK: without an exporter they do nothing. */

import type { MetricMeter } from '@temporalio/common';
import { type Labels, METRICS, type MetricName } from '../domain/metrics.ts';

type OfKind<Kind extends string> = {
  [Name in MetricName]: (typeof METRICS)[Name]['kind'] extends Kind ? Name : never;
}[MetricName];

export type Write<Name extends MetricName> = (value: number, labels: Labels<Name>) => void;

export function counter<Name extends OfKind<'counter'>>(meter: MetricMeter, name: Name): Write<Name> {
  const instrument = meter.createCounter(name, METRICS[name].unit, METRICS[name].help);
  return (value, labels) => instrument.add(value, labels);
}

export function histogram<Name extends OfKind<'histogram'>>(meter: MetricMeter, name: Name): Write<Name> {
  const instrument = meter.createHistogram(name, 'float', METRICS[name].unit, METRICS[name].help);
  return (value, labels) => instrument.record(value, labels);
}

/** Of whole numbers, and of no negative ones. */
export function gauge<Name extends OfKind<'gauge'>>(meter: MetricMeter, name: Name): Write<Name> {
  const instrument = meter.createGauge(name, 'int', METRICS[name].unit, METRICS[name].help);
  return (value, labels) => instrument.set(Math.max(0, Math.floor(value)), labels);
}
