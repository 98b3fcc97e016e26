/** The workflow that carried a delivery, as its row has it: that of a delivery loop runs anew now and then, so its run stands behind it. */
const SESSION_RUN = /^(delivery-session\/.+)\/([0-9a-f-]{36})$/;

/** Where a workflow is in the Temporal UI; null without a workflow. */
export function workflowUrl(
  { uiUrl, namespace }: { uiUrl: string; namespace: string },
  workflowId: string | null,
): string | null {
  if (workflowId === null) return null;
  const [, id = workflowId, runId] = SESSION_RUN.exec(workflowId) ?? [];
  const base = uiUrl.replace(/\/+$/, '');
  const url = `${base}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(id)}`;
  return runId === undefined ? url : `${url}/${runId}`;
}
