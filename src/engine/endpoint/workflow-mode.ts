/**
 * Which deliveries get a run of `deliverEvent`. `auto`: first attempts while traffic is calm, and failures. `always`: every
 * delivery, and its attempts are made inside its run.
 */
export const WORKFLOW_MODES = ['auto', 'always'] as const;

export type WorkflowMode = (typeof WORKFLOW_MODES)[number];

/** SQL of an endpoint's mode: the release before this one, which may run beside it, has a third. */
export const WORKFLOW_MODE = `nullif(delivery_workflows, 'failures')`;

/** SQL of whether any delivery of an endpoint may wait for its run, as a mode. */
export const STRICTEST_MODE = `case when always_workflows_for is null then ${WORKFLOW_MODE} else 'always' end`;
