/** The workflow types of this project: what the worker's bundle is made from. */

export { mirror } from './mirror.ts';
