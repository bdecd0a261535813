/**
 * A server that speaks TLS as PostgreSQL does (SSLRequest first) and passes what is inside on to the real one. The
 * certificates were made for tests: an authority of their own, and a server named `localhost`; the authority's key is gone.
 */

import { connect, createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Target } from '../support/tcp-proxy.ts';

export const TEST_CA = `-----BEGIN CERTIFICATE-----
MIIBZDCCAQugAwIBAgIBATAKBggqhkjOPQQDAjAZMRcwFQYDVQQDDA50ZXN0IGF1
dGhvcml0eTAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowGTEXMBUG
A1UEAwwOdGVzdCBhdXRob3JpdHkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARk
sE6js28snMa7YmmkRNvjxPt3GseWf6x3cW2xEuJk2HChwHWdN1DEm7vsZyjdzuG3
/vCmFZDad/EeKLDGoTSro0IwQDAPBgNVHRMBAf8EBTADAQH/MA4GA1UdDwEB/wQE
AwICBDAdBgNVHQ4EFgQUdoMnkxvCZAVh0VSXreeuOHGULd0wCgYIKoZIzj0EAwID
RwAwRAIgHyWTBH+NhQh12lWaD6gdmSGFlwFq7lNePOpRrAGhnBcCIAoDNq25md4y
7wnacjxR8W8Ej/CoLQVahBiKXU8Sq8Ci
-----END CERTIFICATE-----
`;

const SERVER_CERT = `-----BEGIN CERTIFICATE-----
MIIBgTCCASegAwIBAgIBAjAKBggqhkjOPQQDAjAZMRcwFQYDVQQDDA50ZXN0IGF1
dGhvcml0eTAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowFDESMBAG
A1UEAwwJbG9jYWxob3N0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAENN/om+W/
RGxQGOnh5rECgtRmajMYZ+aJmcfwny+TgS93nB0dxsFjhgM6Yoe3AN0f75GAl8JD
eyKJAOdRgN0rHaNjMGEwCQYDVR0TBAIwADAUBgNVHREEDTALgglsb2NhbGhvc3Qw
HQYDVR0OBBYEFJwU6iG1VeXrJuYqTyrEK/1o74WqMB8GA1UdIwQYMBaAFHaDJ5Mb
wmQFYdFUl63nrjhxlC3dMAoGCCqGSM49BAMCA0gAMEUCIBye0gIyxJrOZMvsaoNw
FZypsWrrEDd5qKstxL5id+NrAiEAwotRHq8YDPTRQeFw9aAY2CpsLQ10hekScJxs
kzrzp/A=
-----END CERTIFICATE-----
`;

const SERVER_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg8YwT5ogqaUuL7XIf
5dP6u4VNwkTBLGblpN9F5iHhJQChRANCAAQ03+ib5b9EbFAY6eHmsQKC1GZqMxhn
5omZx/CfL5OBL3ecHR3GwWOGAzpih7cA3R/vkYCXwkN7IokA51GA3Ssd
-----END PRIVATE KEY-----
`;

export interface TlsFront {
  readonly port: number;
  /** Connections that came through TLS. */
  readonly secured: number;
  close(): Promise<void>;
}

/** @param target the PostgreSQL server behind it. */
export async function startTlsFront(target: Target): Promise<TlsFront> {
  const sockets = new Set<Socket>();
  let secured = 0;
  const server = createServer((client) => {
    sockets.add(client);
    client.on('error', () => client.destroy());
    client.once('data', () => {
      client.pause();
      client.write('S');
      const inside = new TLSSocket(client, { isServer: true, key: SERVER_KEY, cert: SERVER_CERT });
      const behind = connect(target);
      inside.once('secure', () => {
        secured += 1;
      });
      inside.on('error', () => behind.destroy());
      behind.on('error', () => inside.destroy());
      inside.once('close', () => behind.destroy());
      inside.pipe(behind).pipe(inside);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no TCP address');
  return {
    port: address.port,
    get secured() {
      return secured;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
