/** JSON Pointer (RFC 6901), reading only. `''` is the whole document. */

const POINTER = /^(?:\/(?:[^~/]|~[01])*)*$/;

export function isJsonPointer(text: string): boolean {
  return POINTER.test(text);
}

/** The value at `pointer`, or `undefined` where there is none. Own properties only. */
export function at(document: unknown, pointer: string): unknown {
  let value = document;
  for (const token of pointer.split('/').slice(1)) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    if (Array.isArray(value) && !/^(?:0|[1-9]\d*)$/.test(name)) return undefined;
    value = Object.getOwnPropertyDescriptor(value, name)?.value;
  }
  return value;
}

/** A field of a row: a plain name, or a pointer where it begins with `/`. */
export function field(row: unknown, name: string): unknown {
  if (name.startsWith('/')) return at(row, name);
  return at(row, `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`);
}
