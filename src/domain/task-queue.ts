/** How Temporal is asked who polls a task queue, by whoever starts workflows and by workers alike. */

export interface Queue {
  readonly namespace: string;
  readonly taskQueue: string;
}

/** `TASK_QUEUE_TYPE_WORKFLOW` of Temporal's API. */
const WORKFLOWS = 1;

/** What `describeTaskQueue` of Temporal's API takes, for the polls of workflow tasks. */
export function workflowPolls({ namespace, taskQueue }: Queue) {
  return { namespace, taskQueue: { name: taskQueue }, taskQueueType: WORKFLOWS };
}
