/** Ends a switch over a union: a new member becomes a type error here. */
export function assertNever(value: never): never {
  throw new Error(`unhandled case: ${typeof value}`);
}
