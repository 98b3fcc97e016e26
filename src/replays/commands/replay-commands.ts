import { Command } from 'commander';
import {
  type AdminOutcome,
  adminAction,
  alignedFields,
  alignedTable,
  parseIsoTime,
} from '../../platform/cli/admin-action.ts';
import type { Config } from '../../platform/config/config.ts';
import { workflowUrl } from '../../platform/temporal/client-connection.ts';
import type { GivenSelection } from '../replay-input.ts';
import type { ReplayCount } from '../replay-selection.ts';
import { type ReplayOutcomes, replayWorkflowId } from '../replay-store.ts';
import {
  countReplay,
  type ReplayView,
  replayOf,
  replaysOf,
  startReplay,
  switchReplay,
  wabaOfReplay,
} from '../replays.ts';

type StartOptions = {
  waba: string;
  delivery?: string[];
  endpoint?: string;
  from?: Date;
  to?: Date;
  types?: string[];
  states?: string[];
  dryRun?: boolean;
};

/** `admin replay …` */
export function replayCommand(): Command {
  return new Command('replay')
    .description('send deliveries again: behind new events, each with the id and the bytes that it had')
    .addCommand(startCommand())
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(switchCommand('pause', 'send nothing more of a replay until it is resumed; retries go on'))
    .addCommand(switchCommand('resume', 'go on with a paused replay'))
    .addCommand(switchCommand('cancel', 'end a replay; what was sent stays sent, the rest is dropped'));
}

function startCommand(): Command {
  const command = new Command('start')
    .description('send again what a list or a filter selects; count it first with --dry-run')
    .requiredOption('--waba <id>', 'whose deliveries')
    .option('--delivery <dlv_id>', 'one delivery; may be repeated, instead of a filter', parseRepeated)
    .option('--endpoint <id>', 'deliveries of this endpoint (default: of every one)')
    .option('--from <ISO time>', 'made at this time or later, such as 2027-01-31T12:00:00Z', parseIsoTime)
    .option('--to <ISO time>', 'made before this time (default: now)', parseIsoTime)
    .option('--types <types>', 'event types, comma separated (default: all but test)', parseList)
    .option(
      '--states <states>',
      'delivered, failed, dropped, not_sent, comma separated (default: all)',
      parseList,
    )
    .option('--dry-run', 'count what would be sent, and send nothing');
  const example = 'replay start --waba 900000000000101 --endpoint 3 --states failed --dry-run';
  return adminAction<StartOptions>(command, example, async ({ tools, options }) => {
    const { waba } = options;
    const selection = selectionOf(options);
    if (options.dryRun) return describeCount(await countReplay(tools, waba, selection, null));
    const { replayId } = await startReplay(tools, waba, selection, 'operator', null);
    return describeReplay(tools.config, await replayOf(tools, waba, replayId));
  });
}

function selectionOf({ delivery, endpoint, from, to, types, states }: StartOptions): GivenSelection {
  return { deliveryIds: delivery, endpointId: endpoint, from, to, eventTypes: types, states };
}

function parseRepeated(text: string, earlier: string[] = []): string[] {
  return [...earlier, text];
}

function parseList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function describeCount(count: ReplayCount): AdminOutcome {
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

function listCommand(): Command {
  const command = new Command('list')
    .description('list the newest replays of a WABA')
    .requiredOption('--waba <id>', 'the WABA');
  const example = 'replay list --waba 900000000000101';
  return adminAction<{ waba: string }>(command, example, async ({ tools, options }) => {
    const replays = await replaysOf(tools, options.waba);
    return {
      json: replays,
      text: alignedTable(
        ['ID', 'STATE', 'TOTAL', 'QUEUED', 'SKIPPED', 'BY', 'STARTED'],
        replays.map((replay) => [
          replay.replayId,
          replay.state,
          replay.total,
          replay.queued,
          replay.skipped,
          replay.requestedBy,
          replay.createdAt,
        ]),
        `WABA ${options.waba} has no replays.`,
      ),
    };
  });
}

function showCommand(): Command {
  const command = new Command('show')
    .description('show how far a replay is and what came of its deliveries')
    .argument('<id>');
  return adminAction(command, 'replay show 7', async ({ tools, args }) => {
    const [replayId = ''] = args;
    return describeReplay(tools.config, await replayOf(tools, await wabaOfReplay(tools, replayId), replayId));
  });
}

function switchCommand(action: 'pause' | 'resume' | 'cancel', description: string): Command {
  const command = new Command(action).description(description).argument('<id>');
  return adminAction(command, `replay ${action} 7`, async ({ tools, args }) => {
    const [replayId = ''] = args;
    const wabaId = await wabaOfReplay(tools, replayId);
    return describeReplay(tools.config, await switchReplay(tools, wabaId, replayId, action));
  });
}

function describeReplay(
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
