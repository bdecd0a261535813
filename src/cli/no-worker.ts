/** What is said where nobody works on what Temporal holds. */

/** Of a workflow that runs, and is not answered for. */
export function noWorkerWords(taskQueue: string): string {
  return `no worker answers on task queue ${taskQueue}; start one with \`retl worker\``;
}
