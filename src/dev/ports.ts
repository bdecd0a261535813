/** Free TCP ports on the loopback address. */

import { createServer } from 'node:net';

/** A port that nobody listened on a moment ago; another program may still be quicker. */
export async function freePort(): Promise<number> {
  return listenOnce(0);
}

/** `wanted` if it is free, else the next free one above it, else any. */
export async function freePortFrom(wanted: number, tries = 20): Promise<number> {
  for (let port = wanted; port < wanted + tries && port < 65_536; port += 1) {
    try {
      return await listenOnce(port);
    } catch {
      // In use or not allowed: try the next.
    }
  }
  return freePort();
}

export async function isFree(port: number): Promise<boolean> {
  return listenOnce(port).then(
    () => true,
    () => false,
  );
}

function listenOnce(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      const address = server.address();
      server.close(() => {
        if (address !== null && typeof address === 'object') resolve(address.port);
        else reject(new Error('a listening server without a port'));
      });
    });
  });
}
