/** What a failed look at the API means to a user, in words, with the remedy. */

import type { PreflightProblem } from '../port.ts';

interface Explanation {
  readonly when: (code: string) => boolean;
  readonly message: string;
  readonly remedy: string;
}

const EXPLANATIONS: readonly Explanation[] = [
  {
    when: (code) => code.startsWith('oauth-'),
    message: 'The token endpoint gives no token.',
    remedy: 'Check `auth.oauth2`: token_url, client_id, client_secret, scope and audience.',
  },
  {
    when: (code) => code === 'dns-failed',
    message: 'The host of `base_url` cannot be resolved.',
    remedy: 'Check the spelling of `base_url`, and name resolution where the worker runs.',
  },
  {
    when: (code) => code === 'tls-failed',
    message: 'No verified TLS connection can be made.',
    remedy: 'Check the server’s certificate; for a private authority, give its certificate as `tls.ca`.',
  },
  {
    when: (code) => code === 'http-401' || code === 'http-403' || code === 'http-407',
    message: 'The API refuses these credentials.',
    remedy: 'Check `auth` of the connection, and the rights of that account.',
  },
  {
    when: (code) => /^http-3\d\d$/.test(code),
    message: 'The API redirects; redirects are refused.',
    remedy: 'Put the final address into `base_url`.',
  },
  {
    when: (code) => code === 'http-404' || code === 'http-405' || code === 'http-410',
    message: 'The API does not know the path of `verify_empty`.',
    remedy: 'Check the paths, and that the audience exists.',
  },
  {
    when: (code) => code.startsWith('http-'),
    message: 'The API does not answer the read of `verify_empty` with success.',
    remedy: 'Try the request by hand; the status is in the code.',
  },
];

const UNREACHABLE = {
  message: 'The API cannot be reached.',
  remedy: 'Check `base_url`, firewalls and proxies between the worker and the API, and whether it is up.',
};

/** A server that is down, slow or busy. A name that is not known, or a certificate, wants mending. */
const TRANSIENT =
  /^(oauth-)?(http-(408|425|429|5\d\d)|connection-\w+|connect-\w+|unreachable|request-timeout|reply-truncated)$/;

/** Whether what a code tells of may pass by itself. */
export function mayPass(code: string): boolean {
  return TRANSIENT.test(code);
}

export function preflightProblem(code: string): PreflightProblem {
  const { message, remedy } = EXPLANATIONS.find(({ when }) => when(code)) ?? UNREACHABLE;
  return { code, message, remedy, ...(mayPass(code) ? { transient: true } : {}) };
}
