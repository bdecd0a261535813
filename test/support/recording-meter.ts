/** A meter that keeps what is written to it, as series of labels. */

import type { MetricMeter, MetricTags } from '@temporalio/common';

export class RecordingMeter implements MetricMeter {
  /** `name{label="value",…}`, labels in order of their names; counters summed, gauges and histograms as last written. */
  readonly series: { [series: string]: number } = {};

  createCounter(name: string): ReturnType<MetricMeter['createCounter']> {
    const add = (value: number, tags?: MetricTags): void => {
      const series = seriesOf(name, tags);
      this.series[series] = (this.series[series] ?? 0) + value;
    };
    const counter = { name, kind: 'counter', valueType: 'int', add, withTags: () => counter } as const;
    return counter;
  }

  createHistogram(name: string): ReturnType<MetricMeter['createHistogram']> {
    const record = (value: number, tags?: MetricTags) => this.#set(name, value, tags);
    const histogram = {
      name,
      kind: 'histogram',
      valueType: 'float',
      record,
      withTags: () => histogram,
    } as const;
    return histogram;
  }

  createGauge(name: string): ReturnType<MetricMeter['createGauge']> {
    const set = (value: number, tags?: MetricTags) => this.#set(name, value, tags);
    const gauge = { name, kind: 'gauge', valueType: 'int', set, withTags: () => gauge } as const;
    return gauge;
  }

  withTags(): MetricMeter {
    return this;
  }

  #set(name: string, value: number, tags?: MetricTags): void {
    this.series[seriesOf(name, tags)] = value;
  }
}

function seriesOf(name: string, tags: MetricTags = {}): string {
  const labels = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1));
  return labels.length === 0 ? name : `${name}{${labels.map(([k, v]) => `${k}="${v}"`).join(',')}}`;
}
