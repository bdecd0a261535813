import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { connectionSchema } from '../../src/sources/postgres/config.ts';

const FIELDS = { host: 'db.example.com', database: 'shop', user: 'retl' };

function problems(written: unknown): string[] {
  const result = connectionSchema.safeParse(written);
  if (result.success) return [];
  return result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
}

function tlsMode(written: unknown): string {
  return connectionSchema.parse(written).tls.mode;
}

describe('a PostgreSQL source connection', () => {
  it('takes a url apart, percent-encoding undone', () => {
    const config = connectionSchema.parse({
      url: 'postgresql://re%40tl:p%2Fw%3A@db.example.com:6000/my%20shop',
    });
    expect(config).toMatchObject({
      host: 'db.example.com',
      port: 6000,
      database: 'my shop',
      user: 're@tl',
      password: 'p/w:',
    });
  });

  it('takes a password beside a url that has none, special characters as they are', () => {
    expect(connectionSchema.parse({ url: 'postgres://u@h/d', password: 'p@/#%' }).password).toBe('p@/#%');
  });

  it('marks its secrets, and has a JSON Schema for editors', () => {
    const schema = JSON.stringify(z.toJSONSchema(connectionSchema, { io: 'input' }));
    expect(schema.match(/"secret":true/g)).toHaveLength(2);
    expect(schema).toContain('verify-full for every other host');
  });

  it('takes single fields, and digits as text for numbers, as environment variables give them', () => {
    const config = connectionSchema.parse({
      ...FIELDS,
      port: '6000',
      password: 'x',
      statement_timeout_ms: '0',
    });
    expect(config).toMatchObject({ port: 6000, statementTimeoutMs: 0, password: 'x' });
  });

  it.each([
    ['localhost', 'disable'],
    ['127.0.0.1', 'disable'],
    ['::1', 'disable'],
    ['/var/run/postgresql', 'disable'],
    ['db.example.com', 'verify-full'],
    ['10.0.0.5', 'verify-full'],
    ['localhost.example.com', 'verify-full'],
    ['127.example.com', 'verify-full'],
  ])('for host %s TLS is %s unless the user writes otherwise', (host, mode) => {
    expect(tlsMode({ ...FIELDS, host })).toBe(mode);
    expect(tlsMode({ ...FIELDS, host, tls: { mode: 'require' } })).toBe('require');
  });

  it('takes the sslmode of a url, and channel binding as a wish for a proven server', () => {
    expect(tlsMode({ url: 'postgres://u@db.example.com/d?sslmode=require' })).toBe('require');
    expect(tlsMode({ url: 'postgres://u@db.example.com/d?sslmode=disable' })).toBe('disable');
    expect(tlsMode({ url: 'postgres://u@db.example.com/d?sslmode=require&channel_binding=require' })).toBe(
      'verify-full',
    );
  });

  it('finds a Unix socket in a url', () => {
    const config = connectionSchema.parse({ url: 'postgres://u@/d?host=/var/run/postgresql' });
    expect(config.host).toBe('/var/run/postgresql');
    expect(config.tls.mode).toBe('disable');
  });

  it('names every missing field at once', () => {
    expect(problems({ port: 5432 }).map((problem) => problem.split(':')[0])).toEqual([
      'host',
      'database',
      'user',
    ]);
  });

  it.each([
    [{ url: 'postgres://u:s3cret@h/d', host: 'h' }, 'host: is given beside a url'],
    [{ url: 'postgres://u:s3cret@h/d', password: 's3cret' }, 'password: is given in the url too'],
    [{ url: 'mysql://u:s3cret@h/d' }, 'url: is not a URL of the form postgres://'],
    [{ url: 'postgres://u:s3cret#x@h/d' }, 'url: is not a URL of the form postgres://'],
    [{ url: 'postgres://u:s3cret%@h/d' }, 'url: is not a URL of the form postgres://'],
    [{ url: 'postgres://u:s3cret@h1,h2/d' }, 'url: names several hosts'],
    [{ url: 'postgres://u:s3cret@h/d?sslmode=prefer' }, 'url: has an sslmode that is not one of'],
    [{ url: 'postgres://u:s3cret@h/d?options=s3cret' }, 'url: has parameters that are not known here'],
    [{ url: 'postgres://u:s3cret@h/d?sslmode=disable', tls: { mode: 'require' } }, 'tls.mode: differs from'],
    [{ ...FIELDS, password: 's3cret', port: 's3cret' }, 'port: must be a whole number from 1 to 65535'],
    [{ ...FIELDS, password: 's3cret', port: 0 }, 'port: must be a whole number'],
    [{ ...FIELDS, statement_timeout_ms: -1 }, 'statement_timeout_ms: must be a whole number'],
    [{ ...FIELDS, tls: { cert: 's3cret' } }, 'tls.key: is missing'],
    [
      { ...FIELDS, tls: { mode: 'disable', ca: 's3cret' } },
      'tls.mode: is disable, but a certificate is given',
    ],
    [{ ...FIELDS, passwd: 's3cret' }, ': Unrecognized key: "passwd"'],
  ])('leaks: %# a mistake is named by field and never repeats what was written', (written, expected) => {
    const found = problems(written);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(expected);
    expect(found.join()).not.toContain('s3cret');
  });
});
