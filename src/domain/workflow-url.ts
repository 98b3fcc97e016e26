/** Where a workflow is in the Temporal UI; null without a workflow. */
export function workflowUrl(
  { uiUrl, namespace }: { uiUrl: string; namespace: string },
  workflowId: string | null,
): string | null {
  if (workflowId === null) return null;
  const base = uiUrl.replace(/\/+$/, '');
  return `${base}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(workflowId)}`;
}
