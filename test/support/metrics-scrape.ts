/** What a worker tells Prometheus: its text, as values by series. */

import { createServer } from 'node:net';

/** An address of this machine that nobody listens on. */
export async function freeAddress(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `127.0.0.1:${address.port}`;
}

export async function scrape(address: string): Promise<Scrape> {
  const reply = await fetch(`http://${address}/metrics`);
  if (!reply.ok) throw new Error(`the worker answers ${reply.status}`);
  return new Scrape(await reply.text());
}

export class Scrape {
  constructor(readonly text: string) {}

  /** The sum of the series of `name` that have these labels; `null` where there is none. */
  value(name: string, labels: { readonly [label: string]: string } = {}): number | null {
    const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
    const lines = this.text
      .split('\n')
      .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
    const found = lines.filter((line) => wanted.every((label) => line.includes(label)));
    if (found.length === 0) return null;
    return found.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  }

  /** The values of one label of a metric that stand at 1. */
  ones(name: string, label: string, labels: { readonly [label: string]: string }): readonly string[] {
    const values = new Set(
      [...this.text.matchAll(new RegExp(`${label}="([^"]*)"`, 'g'))].map((m) => m[1] ?? ''),
    );
    return [...values].filter((value) => this.value(name, { ...labels, [label]: value }) === 1);
  }

  /** Every metric that is told of, by its type. */
  types(): ReadonlyMap<string, string> {
    return new Map([...this.text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map((m) => [m[1] ?? '', m[2] ?? '']));
  }
}
