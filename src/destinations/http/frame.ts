/** How operations become a request body, for each shape a user can choose. Pure. */

import { ARRAY_FRAME, LINES_FRAME } from '../../domain/request.ts';
import type { Action, RequestFrame } from '../port.ts';
import { bodyShape, type HttpOptions } from './options.ts';

const ONE_ITEM = { open: '', itemOpen: '', itemClose: '', separator: '', close: '' };

export function httpFrame(action: Action, options: HttpOptions): RequestFrame {
  return { ...brackets(action, options), operationId: options.operation_id ?? null };
}

function brackets(action: Action, options: HttpOptions): Omit<RequestFrame, 'operationId'> {
  const shape = bodyShape(options, action);
  if (typeof shape === 'object') {
    const fields = Object.entries(shape.fields).map(
      ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)},`,
    );
    return {
      ...ONE_ITEM,
      open: `{${fields.join('')}${JSON.stringify(shape.wrap)}:[`,
      separator: ',',
      close: ']}',
    };
  }
  if (shape === 'array') return ARRAY_FRAME;
  if (shape === 'ndjson') return LINES_FRAME;
  return ONE_ITEM;
}
