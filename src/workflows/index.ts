/** The workflow types of this project: what the worker's bundle is made from. */

export { index } from './index-follow.ts';
export { maintenance } from './maintenance.ts';
export { mirror } from './mirror.ts';
