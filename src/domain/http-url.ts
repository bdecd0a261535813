/** URLs of HTTP services, as every setting that takes one judges them. */

/** `localhost`, 127.0.0.0/8 and ::1, as URLs write it: the only hosts that plain HTTP is taken for without asking. */
export function isLoopback(hostname: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i.test(hostname);
}

/** Whether requests to it would cross a network in the clear. */
export function isPlainHttp(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !isLoopback(hostname);
}

/** http or https, without user, password, query or fragment. */
export function isBareHttpUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, username, password, search, hash } = new URL(url);
  return /^https?:$/.test(protocol) && [username, password, search, hash].every((part) => part === '');
}
