import type { Client } from '@temporalio/client';
import { shownUrl } from '../../../platform/http/outbound-url.ts';
import type { Logger } from '../../../platform/logger.ts';
import { type Loop, startLoop } from '../../../platform/loop.ts';
import { publicDeliveryId } from '../../../platform/public-ids.ts';
import { startOnce, type WorkflowStart } from '../../../platform/temporal/start-workflow.ts';
import { searchAttributes } from '../../../platform/temporal/workflow-options.ts';
import { type DeliveryLabel, deliveryWorkflowId } from '../../queue/claim.ts';
import type { DeliveryLoop } from '../loop/delivery-loop.ts';
import type { DeliveryNews } from '../run-news.ts';

/** Ids only: the event's bytes stay in the database. */
export type DeliverEventInput = {
  deliveryId: string;
  deliveryDay: string;
  /** Longest time an attempt with its recording may take, in ms: its lease. */
  leaseMs: number;
  /** The outcome, if it is known already; null: an attempt is under way, or is to be made. */
  news: DeliveryNews | null;
  /** The first attempt waits for this run, in the process that started it. */
  held: boolean;
};

type DeliveryStartTools = { taskQueue: string; leaseMs: number; eager: boolean; publicUrl: string };

/**
 * How the run of a delivery is started. `eager` hands the first task to a worker of this process, which must run one.
 * `eventIdHash` is null when it is not known: then only its id finds it.
 */
export function deliveryStart(
  { taskQueue, leaseMs, eager, publicUrl }: DeliveryStartTools,
  label: DeliveryLabel,
  { eventIdHash, ...begin }: Pick<DeliverEventInput, 'news' | 'held'> & { eventIdHash: string | null },
): WorkflowStart {
  const { deliveryId, deliveryDay } = label;
  const input: DeliverEventInput = { deliveryId, deliveryDay, leaseMs, ...begin };
  const options = {
    taskQueue,
    workflowId: deliveryWorkflowId(label),
    // A run that was there shows how its delivery ended, or that an operator ended it.
    workflowIdReusePolicy:
      (begin.news?.end ?? null) === null ? ('ALLOW_DUPLICATE' as const) : ('REJECT_DUPLICATE' as const),
    requestEagerStart: eager,
    args: [input],
    typedSearchAttributes: searchAttributes({ ...label, eventId: eventIdHash }),
    staticSummary: `${label.eventType} → ${hostOf(label.endpointUrl)}`,
    staticDetails: detailsOf(label, eventIdHash, publicUrl),
  };
  return { workflowType: 'deliverEvent', options };
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? 'invalid URL';
}

/** Markdown; values come from outside, so each stands in a code span that it cannot close. */
function detailsOf(label: DeliveryLabel, eventIdHash: string | null, publicUrl: string): string {
  const code = (text: string) => `\`${text.replaceAll('`', "'").slice(0, 300)}\``;
  const deliveryId = publicDeliveryId(label.deliveryId);
  const page = `${publicUrl}/portal/w/${encodeURIComponent(label.wabaId)}/deliveries/${deliveryId}`;
  return [
    `Event ${code(label.eventType)} for endpoint ${label.endpointId}: ${code(shownUrl(label.endpointUrl))}`,
    `HeliographEventId ${code(eventIdHash ?? 'not known')}: a hash of the eventId. \`admin events search-attribute <eventId>\` prints it.`,
    `Tenant ${label.tenantId}, WABA ${code(label.wabaId)}, [delivery ${deliveryId}](${page})`,
    'Cancel drops the delivery and lets the next of its lane go. Terminate and pause change nothing: a worker makes the attempts. One that blocks its lane for too long steps aside and keeps its retries.',
  ].join('\n\n');
}

/** The task queue of the one worker process whose loop is shown. */
export type DeliverSessionInput = { taskQueue: string };

/** Keeps `delivery-session/<worker>` open, the workflow that shows the delivery loop of this process. */
export function startSessionWorkflow(tools: {
  client: Client;
  logger: Logger;
  loop: DeliveryLoop;
  worker: string;
  /** Where its workflow tasks run, and where its activity, which only this process polls. */
  queues: { deliveries: string; session: string };
}): Loop {
  const { client, worker, queues } = tools;
  return startLoop({
    name: 'session-workflow',
    logger: tools.logger,
    turn: async () => {
      if (tools.loop.isShown()) return false;
      const input: DeliverSessionInput = { taskQueue: queues.session };
      const options = {
        taskQueue: queues.deliveries,
        workflowId: `delivery-session/${worker}`,
        args: [input],
        staticSummary: `delivery loop of ${worker}`,
        staticDetails:
          'Deliveries that succeed at once mostly have no workflow of their own: this process claims, sends and records them in groups. The pending activity shows the counts and the ids of the busiest endpoints. Cancel and terminate lose nothing: it is started again.',
      };
      await startOnce(client, { workflowType: 'deliverSession', options });
      return false;
    },
  });
}
