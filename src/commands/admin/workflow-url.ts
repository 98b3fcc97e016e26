import type { Config } from '../../config/config.ts';

/** Where a workflow is in the Temporal UI; null without a workflow. */
export function workflowUrl(
  { uiUrl, namespace }: Pick<Config['temporal'], 'uiUrl' | 'namespace'>,
  workflowId: string | null,
): string | null {
  if (workflowId === null) return null;
  const base = uiUrl.replace(/\/+$/, '');
  return `${base}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(workflowId)}`;
}
