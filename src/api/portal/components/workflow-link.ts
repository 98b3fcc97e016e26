import { workflowUrl } from '../../../platform/temporal/client-connection.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import { copyable } from './copyable.ts';

/** The Temporal UI shows the runs of all tenants, so only operators get links to it. */
export function workflowLink({ viewer, context }: Visit, workflowId: string): Markup {
  if (viewer.role !== 'operator') return copyable(workflowId);
  const url = workflowUrl(context.config.temporal, workflowId);
  return html`<a class="mono break" href="${url}" rel="noreferrer">${workflowId}</a>`;
}

/** A fact for operators. */
export function workflowRow(visit: Visit, workflowId: string): [string, Child][] {
  return visit.viewer.role === 'operator' ? [['Workflow', workflowLink(visit, workflowId)]] : [];
}
