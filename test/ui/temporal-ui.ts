/**
 * Temporal's UI explains a run without anybody opening code: what a person finds on its list and pages, in a real browser.
 * The pictures of docs/temporal-ui.md are taken here.
 */

import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROOT } from '../architecture/sources.ts';
import { type Running, retl, startRetl } from '../cli/support.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { RudeApi } from '../support/rude-api.ts';

const BROWSERS = [process.env.CHROMIUM ?? '', '/usr/bin/chromium', '/usr/bin/google-chrome'];
const PICTURES = join(ROOT, 'docs/ui');

let project: TestProject;
let dev: Running;
let api: RudeApi;
let browser: Browser;
let page: Page;
let ui: string;

beforeAll(async () => {
  const executablePath = BROWSERS.find((path) => path !== '' && existsSync(path));
  if (executablePath === undefined)
    throw new Error('No browser: install Debian’s chromium, or name one in CHROMIUM.');
  await mkdir(PICTURES, { recursive: true });
  api = await RudeApi.start();
  project = await createTestProject();
  await retl(['init'], { cwd: project.folder });
  await addMirrors();
  dev = startRetl(['dev', '--json'], { cwd: project.folder });
  ui = JSON.parse((await dev.line('"ready"')) ?? '{}').ui;
  await dev.says('worker-ready');
  browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
  });
  page = await browser.newPage({ viewport: { width: 1360, height: 1100 } });
});

afterAll(async () => {
  await browser?.close();
  dev?.signal('SIGTERM');
  await dev?.ended;
  await api?.down();
  await project?.remove();
});

/** A second mirror, into an API that will lose an answer. */
async function addMirrors(): Promise<void> {
  const base = await readFile(join(project.folder, 'retl.yaml'), 'utf8');
  const crm = `  crm: { type: http, base_url: "${api.url}", allow_plain_http: true }\n`;
  await project.write('retl.yaml', base.replace('connections:\n', `connections:\n${crm}`));
  await project.write('mirrors/newsletter.yaml', {
    source: { connection: 'playground', query: 'select id, plan from customers', key: 'id' },
    members: { identity: { id: 'id' }, payload: { plan: 'plan' } },
    destination: {
      connection: 'crm',
      upsert: { method: 'POST', path: '/members' },
      remove: { method: 'DELETE', path: '/members' },
    },
    baseline: { kind: 'new-empty', attested: 'made for this test' },
  });
}

const run = (...args: readonly string[]) => retl(args, { cwd: project.folder });
const rewrite = async (file: string, from: string, to: string) =>
  project.write(file, (await readFile(join(project.folder, file), 'utf8')).replace(from, to));

async function open(path: string): Promise<void> {
  await page.goto(`${ui}/namespaces/default/${path}`);
}

/** The tab of a run's page where the current details stand. */
async function openDetails(workflow: string): Promise<void> {
  await open(`workflows/${encodeURIComponent(workflow)}`);
  await page.getByRole('tab', { name: 'User Metadata' }).or(page.getByText('User Metadata')).first().click();
}

/** The UI renders Markdown in a frame of its own. */
async function shows(text: string): Promise<void> {
  await expect
    .poll(
      async () => {
        const found = await Promise.all(
          page.frames().map((frame) =>
            frame
              .getByText(text)
              .count()
              .catch(() => 0),
          ),
        );
        return found.some((count) => count > 0);
      },
      { timeout: 30_000, message: text },
    )
    .toBe(true);
}

async function picture(name: string): Promise<void> {
  await page.screenshot({ path: join(PICTURES, `${name}.png`) });
}

test('a parked run shows what it would do, until when it waits and how to answer', async () => {
  expect((await run('run', 'example')).code).toBe(0);
  await rewrite('mirrors/example.yaml', "plan = 'vip'", "plan = 'no such plan'");
  expect((await run('run', 'example')).code).toBe(4);
  await openDetails('mirror/example');
  await shows('Parked by the guard: it would remove 100 of 100 members');
  await shows('retl approve example');
  await picture('parked');
});

test('a blocked run names the batch, and what to do about it', async () => {
  api.always = (request) => {
    request.apply();
    request.socket.destroy();
  };
  expect((await run('run', 'newsletter')).code).toBe(6);
  await openDetails('mirror/newsletter');
  await shows('Waits (blocked');
  await shows('retl resolve');
  await picture('blocked');
});

test('the list is filtered by mirror, phase and outcome', async () => {
  const listed = async (query: string, id: string) => {
    await open(`workflows?query=${encodeURIComponent(query)}`);
    await page.getByRole('link', { name: id }).first().waitFor();
  };
  await listed('RetlPhase="parked"', 'mirror/example');
  await listed('RetlPhase="blocked"', 'mirror/newsletter');
  await listed('RetlMirror="example" AND RetlOutcome="completed"', 'mirror/example');
  await listed('RetlPhase IN ("parked", "blocked")', 'mirror/newsletter');
  await picture('list');
});

test('the history says what each step and each wait was for', async () => {
  expect((await run('reject', 'example', '--yes', '--because', 'a ruined query')).code).toBe(0);
  await open('workflows/mirror%2Fexample');
  await page.getByText('Hold the plan against the safety limits').first().waitFor();
  await page.getByText('Wait for an answer to the guard').first().waitFor();
  await picture('history');
});
