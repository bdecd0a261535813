/** No test reaches beyond this machine: what it could reach would have to be named. */

import { expect, test } from 'vitest';
import { filesBelow } from './sources.ts';

const URLS = /\b(?:https?|postgres(?:ql)?):\/\/(?:[^\s'"`/@]*@)?([a-z0-9.-]+)/gi;

/** This machine, names of one label, and those that nobody can own (RFC 2606). */
const NOWHERE = [
  /^127(?:\.\d+){3}$/,
  /^[a-z0-9-]+$/i,
  /\.(?:example|invalid|test|localhost|internal)$/i,
  /(?:^|\.)example\.(?:com|org|net)\.?$/i,
];

/** They read settings and open nothing. */
const SETTINGS_ONLY = /^test\/(?:config\/|contract\/[a-z0-9-]+-config\.test\.ts$)/;

/** Fetches a pinned program from a public repository, as pip does by itself. */
const DOWNLOADS = /^test\/support\/opensearch\/jars\.ts$/;

function hostsIn(text: string): readonly string[] {
  return [...text.matchAll(URLS)].map((match) => match[1] ?? '');
}

const isNowhere = (host: string): boolean => NOWHERE.some((form) => form.test(host));

test('no test names a host beyond this machine, but for those that only read settings', () => {
  const beyond = filesBelow('test', ['.ts', '.json', '.yaml'])
    .filter((file) => !SETTINGS_ONLY.test(file.path) && !DOWNLOADS.test(file.path))
    .flatMap((file) =>
      hostsIn(file.text)
        .filter((host) => !isNowhere(host))
        .map((host) => `${file.path}: ${host}`),
    );
  expect(beyond).toEqual([]);
});

test('a host is found in every form that is used, and a stranger among them', () => {
  const dots = (...labels: readonly string[]) => labels.join('.');
  const text = `https://${dots('api', 'vendor', 'io')}/v1 postgres://me:word@${dots('db', 'prod', 'net')}:5432 http://127.0.0.1:80`;
  expect(hostsIn(text).filter((host) => !isNowhere(host))).toEqual(['api.vendor.io', 'db.prod.net']);
});
