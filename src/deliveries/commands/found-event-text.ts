import { alignedFields, alignedTable } from '../../platform/cli/aligned-text.ts';
import type { EventReport } from './find-command.ts';

type DeliveryReport = EventReport['deliveries'][number];

/** An event and its deliveries, for people. */
export function foundEventText(event: EventReport): string {
  const head = alignedFields([
    ['event', `${event.eventType} ${event.webhookId}`],
    ['WABA', `${event.wabaId} (userId ${event.userId}), phone number id ${event.phoneNumberId}`],
    ['created', event.createdAt],
    ['occurredAt', event.occurredAt ?? 'not released yet'],
  ]);
  if (event.deliveries.length === 0) return `${head}\n\n  no endpoint was subscribed to it`;
  return [head, ...event.deliveries.map((delivery) => indented(deliveryText(delivery)))].join('\n\n');
}

function deliveryText(delivery: DeliveryReport): string {
  const queued = delivery.queueState === null ? '' : `, ${delivery.queueState} in the queue`;
  const fields = alignedFields([
    ['delivery', delivery.deliveryId],
    ['endpoint', `${delivery.endpointId} ${delivery.url ?? '(gone)'} (${delivery.endpointMode ?? 'gone'})`],
    ['state', `${delivery.state}${queued}`],
    ['last status', delivery.lastStatusCode],
    ['last error', delivery.lastError],
    ['next attempt', delivery.nextAttemptAt],
    ['aside since', delivery.steppedAsideAt],
    ['workflow', delivery.workflowUrl],
  ]);
  const attempts = alignedTable(
    ['ATTEMPT', 'STARTED', 'MS', 'STATUS', 'ERROR'],
    delivery.attemptLog.map((attempt) => [
      attempt.attempt,
      attempt.startedAt,
      attempt.durationMs.toFixed(1),
      attempt.statusCode,
      attempt.errorClass === null ? null : `${attempt.errorClass}: ${attempt.errorMessage ?? ''}`,
    ]),
    'no attempts yet',
  );
  return `${fields}\n${attempts}`;
}

function indented(text: string): string {
  return text.replace(/^/gm, '  ');
}
