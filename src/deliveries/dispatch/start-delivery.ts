import type { WorkflowStartOptions } from '@temporalio/client';
import { shownUrl } from '../../platform/http/outbound-url.ts';
import { publicDeliveryId } from '../../platform/public-ids.ts';
import { searchAttributes } from '../../platform/temporal/search-attributes.ts';
import { type DeliveryLabel, deliveryWorkflowId } from '../queue/delivery-label.ts';

/** Ids only: the event's bytes stay in the database. */
export type DeliverEventInput = {
  deliveryId: string;
  deliveryDay: string;
  /** Longest time an attempt with its recording may take, in ms: its lease. */
  leaseMs: number;
};

export type DeliveryStartTools = {
  taskQueue: string;
  leaseMs: number;
  /** Hands the first task to a worker of this process; only a process that runs workers may ask for it. */
  eager: boolean;
};

/** How the workflow of a delivery is started. */
export function deliveryStart(
  { taskQueue, leaseMs, eager }: DeliveryStartTools,
  label: DeliveryLabel,
): WorkflowStartOptions<(input: DeliverEventInput) => Promise<string>> {
  const { deliveryId, deliveryDay } = label;
  return {
    taskQueue,
    workflowId: deliveryWorkflowId(label),
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    requestEagerStart: eager,
    args: [{ deliveryId, deliveryDay, leaseMs }],
    typedSearchAttributes: searchAttributes(label),
    staticSummary: `${label.eventType} → ${hostOf(label.endpointUrl)}`,
    staticDetails: detailsOf(label),
  };
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? 'invalid URL';
}

/** Markdown; values come from outside, so each stands in a code span that it cannot close. */
function detailsOf(label: DeliveryLabel): string {
  const code = (text: string) => `\`${text.replaceAll('`', "'").slice(0, 300)}\``;
  return [
    `Event ${code(label.eventId)} (${label.eventType}) for endpoint ${label.endpointId}: ${code(shownUrl(label.endpointUrl))}`,
    `Tenant ${label.tenantId}, WABA ${code(label.wabaId)}, delivery ${code(publicDeliveryId(label.deliveryId))}`,
    'Cancel gives the delivery up and lets the next of its lane go. Terminate only restarts it. One that blocks its lane for too long steps aside and keeps its retries.',
  ].join('\n\n');
}
