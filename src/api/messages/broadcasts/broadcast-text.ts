import {
  type Broadcast,
  broadcastWorkflowId,
} from '../../../features/messages/broadcasts/broadcast-store.ts';
import type { BroadcastView } from '../../../features/messages/broadcasts/broadcasts.ts';
import { type AdminOutcome, alignedFields, alignedTable } from '../../../platform/cli/admin-action.ts';
import type { Config } from '../../../platform/config/config.ts';
import { workflowUrl } from '../../../platform/temporal/client-connection.ts';

/** Without a WABA: those of all. */
export function describeBroadcasts(broadcasts: readonly Broadcast[], wabaId?: string): AdminOutcome {
  const ofAll = wabaId === undefined;
  return {
    json: broadcasts,
    text: alignedTable(
      [...(ofAll ? ['WABA'] : []), 'ID', 'NAME', 'STATE', 'RECIPIENTS', 'PENDING', 'BY', 'CREATED'],
      broadcasts.map((broadcast) => [
        ...(ofAll ? [broadcast.wabaId] : []),
        broadcast.id,
        broadcast.name,
        broadcast.state,
        broadcast.recipients,
        broadcast.pending,
        broadcast.requestedBy,
        broadcast.createdAt,
      ]),
      ofAll ? 'There are no broadcasts.' : `WABA ${wabaId} has no broadcasts.`,
    ),
  };
}

export function describeBroadcast({ temporal }: Config, broadcast: BroadcastView): AdminOutcome {
  const { counts } = broadcast;
  const { failedByCode, ...states } = counts;
  const url = workflowUrl(temporal, broadcastWorkflowId(broadcast.id));
  return {
    json: { ...broadcast, workflowUrl: url },
    text: alignedFields([
      ['id', broadcast.id],
      ['name', broadcast.name],
      ['state', broadcast.state],
      ['paused because', broadcast.pausedBecause],
      ['WABA', broadcast.wabaId],
      ['number', broadcast.phoneNumberId],
      ['recipients', broadcast.recipients],
      ...Object.entries(states).map(([state, n]): [string, number] => [state, n]),
      ['failures', Object.entries(failedByCode).map(([code, n]) => `${code}: ${n}`)],
      ['begins', broadcast.sendAt],
      ['by', broadcast.requestedBy],
      ['created', broadcast.createdAt],
      ['started', broadcast.startedAt],
      ['finished', broadcast.finishedAt],
      ['workflow', url],
    ]),
  };
}
