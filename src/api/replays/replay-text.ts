import type { ReplayCount } from '../../features/replays/replay-selection.ts';
import { type ReplayOutcomes, replayWorkflowId } from '../../features/replays/replay-store.ts';
import type { ReplayView } from '../../features/replays/replays.ts';
import { type AdminOutcome, alignedFields, alignedTable } from '../../platform/cli/admin-action.ts';
import type { Config } from '../../platform/config/config.ts';
import { workflowUrl } from '../../platform/temporal/client-connection.ts';

export function describeCount(count: ReplayCount): AdminOutcome {
  const { skipped } = count;
  const counts = (byName: Record<string, number>) =>
    Object.entries(byName).map(([name, deliveries]) => `${name}: ${deliveries}`);
  return {
    json: count,
    text: alignedFields([
      ['deliveries', count.deliveries],
      ['by type', counts(count.byType)],
      ['by endpoint', counts(count.byEndpoint)],
      ['oldest', count.oldest],
      ['newest', count.newest],
      [
        'skipped',
        `${skipped.pending} pending, ${skipped.noBody} without body, ${skipped.endpointGone} without endpoint`,
      ],
    ]),
  };
}

/** Without a WABA: those of all. */
export function describeReplays(replays: readonly ReplayView[], wabaId?: string): AdminOutcome {
  return {
    json: replays,
    text: alignedTable(
      [
        ...(wabaId === undefined ? ['WABA'] : []),
        'ID',
        'STATE',
        'TOTAL',
        'QUEUED',
        'SKIPPED',
        'BY',
        'STARTED',
      ],
      replays.map((replay) => [
        ...(wabaId === undefined ? [replay.wabaId] : []),
        ...[replay.replayId, replay.state, replay.total, replay.queued, replay.skipped],
        ...[replay.requestedBy, replay.createdAt],
      ]),
      wabaId === undefined ? 'There are no replays.' : `WABA ${wabaId} has no replays.`,
    ),
  };
}

export function describeReplay(
  { temporal }: Config,
  replay: ReplayView & { outcomes: ReplayOutcomes },
): AdminOutcome {
  const { outcomes } = replay;
  const url = workflowUrl(temporal, replayWorkflowId(replay.replayId));
  return {
    json: { ...replay, workflowUrl: url },
    text: alignedFields([
      ['id', replay.replayId],
      ['state', replay.state],
      ['WABA', replay.wabaId],
      ['queued', `${replay.queued} of ${replay.total}, ${replay.skipped} skipped`],
      ['delivered', outcomes.delivered],
      ['open', outcomes.pending],
      ['failed', outcomes.failed],
      ['dropped', outcomes.dropped],
      ['selection', JSON.stringify(replay.selection)],
      ['by', replay.requestedBy],
      ['started', replay.createdAt],
      ['finished', replay.finishedAt],
      ['workflow', url],
    ]),
  };
}
