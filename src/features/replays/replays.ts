import { listEndpoints } from '../../engine/endpoint/store.ts';
import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { msOfUuidV7, publicDeliveryId, publicEventId } from '../../platform/public-ids.ts';
import { checkRowId, RequestError } from '../../platform/request-input.ts';
import { knownWaba } from '../accounts/accounts.ts';
import { COUNT_TIMEOUT_MS, countInTurn, START_TIMEOUT_MS } from './count-turn.ts';
import { checkSelection, type GivenSelection } from './replay-input.ts';
import {
  countOf,
  countSelection,
  type ReplayCount,
  type ReplaySelection,
  type SelectedGroup,
  selectionRange,
  totalOf,
} from './replay-selection.ts';
import { changeReplay, ensureWorkflow } from './replay-steps.ts';
import {
  countReplayOutcomes,
  countUnfinishedReplays,
  findReplay,
  findReplayForOperator,
  insertReplay,
  listReplays,
  type Replay,
  type ReplayOutcomes,
} from './replay-store.ts';

/** More than this is several replays: one must stay something that an operator can watch and stop. */
const MAX_DELIVERIES = 1_000_000;
const MAX_UNFINISHED = 10;
const MAX_LISTED = 100;
/** A machine whose clock is ahead may have made an id that seems to come from the future. */
const CLOCK_SPARE_MS = 86_400_000;

export type ReplayTools = { database: Database };

/** `queued` and `skipped` grow until they make up `total`, which was selected when it was started. */
export type ReplayView = Omit<Replay, 'id' | 'selection' | 'cursor'> & {
  replayId: string;
  selection: Omit<ReplaySelection, 'to' | 'eventIds' | 'onlySinceUrl'> & {
    to: string | null;
    eventIds: string[] | null;
  };
  skipped: number;
};

/**
 * Sends nothing. With `timeoutMs` null, the limit of the connection counts. Throws RequestError: `invalid_value`, `unknown_waba`,
 * `unknown_endpoint`, `unknown_delivery`, `replay_too_large`, and RateLimitError while another selection of the tenant is being counted.
 */
export async function countReplay(
  { database }: ReplayTools,
  wabaId: string,
  given: GivenSelection,
  timeoutMs: number | null = COUNT_TIMEOUT_MS,
): Promise<ReplayCount> {
  const { tenantId, selection } = await knownSelection(database, wabaId, given);
  return countOf(await groupsOf(database, { wabaId, selection }, { tenantId, timeoutMs }));
}

/**
 * `requestedBy` says who, for the list. A key that may not read events sends none to a URL that is newer than they are. Throws as
 * `countReplay`, and RequestError: `nothing_to_replay`, `too_many_replays`, `insufficient_scope`.
 */
export async function startReplay(
  { database, actor }: ReplayTools & Audited,
  wabaId: string,
  given: GivenSelection,
  requestedBy: string,
  timeoutMs: number | null = START_TIMEOUT_MS,
): Promise<ReplayView> {
  const { apiKey } = actor;
  const onlySinceUrl = apiKey !== undefined && !apiKey.mayReadEvents;
  const known = await knownSelection(database, wabaId, given);
  const selection = { ...known.selection, ...(onlySinceUrl && { onlySinceUrl }) };
  const turn = { tenantId: known.tenantId, timeoutMs };
  const groups = await groupsOf(database, { wabaId, selection }, turn);
  if (groups.some(({ obstacle }) => obstacle === 'before_url')) throw mayNotRead();
  const range = await selectionRange(database, selection);
  const { deliveries, skipped } = countOf(groups);
  if (deliveries === 0 || range === null) {
    throw new RequestError('nothing_to_replay', 'There is nothing to send again in this selection.');
  }
  if ((await countUnfinishedReplays(database, wabaId)) >= MAX_UNFINISHED) {
    const message = `WABA ${wabaId} has ${MAX_UNFINISHED} unfinished replays; wait for one or cancel it.`;
    throw new RequestError('too_many_replays', message);
  }
  const live = groups.filter(({ obstacle }) => obstacle !== 'endpoint_gone');
  const endpoints = [...new Set(live.map(({ endpointId }) => endpointId))];
  const cursor = {
    toId: range.toId,
    endpoints: endpoints.map((id) => ({ id, nextId: range.fromId })),
    skipped: skipped.endpointGone,
  };
  const total = totalOf(groups);
  return await database.transaction(async (trx) => {
    const replay = await insertReplay(trx, wabaId, { selection, total, cursor, requestedBy });
    await ensureWorkflow(trx, replay);
    const change = { wabaId, action: 'replay.started', target: replayName(replay.id), detail: { total } };
    await recordChange(trx, actor, change);
    return viewOf(replay);
  });
}

/** Throws RequestError: `invalid_value`, `unknown_waba`. */
export async function replaysOf(
  { database }: ReplayTools,
  wabaId: string,
  { beforeId = null as string | null, limit = MAX_LISTED } = {},
): Promise<ReplayView[]> {
  await knownWaba(database, wabaId);
  return (await listReplays(database, wabaId, { beforeId, limit })).map(viewOf);
}

/** Throws RequestError: `invalid_value`, `unknown_replay`. */
export async function replayOf(
  { database }: ReplayTools,
  wabaId: string,
  replayId: string,
): Promise<ReplayView & { outcomes: ReplayOutcomes }> {
  const replay = await findReplay(database, wabaId, checkReplayId(replayId));
  if (replay === null) throw unknownReplay(replayId);
  return { ...viewOf(replay), outcomes: await countReplayOutcomes(database, replay) };
}

/** For operators, who address replays of every WABA. Throws RequestError: `invalid_value`, `unknown_replay`. */
export async function wabaOfReplay({ database }: ReplayTools, replayId: string): Promise<string> {
  const replay = await findReplayForOperator(database, checkReplayId(replayId));
  if (replay === null) throw unknownReplay(replayId);
  return replay.wabaId;
}

const STATE_AFTER = { pause: 'paused', resume: 'running', cancel: 'cancelled' } as const;
const AUDITED_AS = { pause: 'replay.paused', resume: 'replay.resumed', cancel: 'replay.cancelled' };

/**
 * Works while Temporal is away too. Pausing and cancelling reach what is queued; attempts under way end as they do. Throws RequestError:
 * `invalid_value`, `unknown_replay`, `replay_finished`.
 */
export async function switchReplay(
  tools: ReplayTools & Audited,
  wabaId: string,
  replayId: string,
  action: 'pause' | 'resume' | 'cancel',
): Promise<ReplayView & { outcomes: ReplayOutcomes }> {
  const ids = { wabaId, replayId: checkReplayId(replayId) };
  const audited = { wabaId, action: AUDITED_AS[action], target: replayName(replayId) };
  const changed = await changeReplay(tools.database, ids, STATE_AFTER[action], async (trx, change) => {
    if (change.before !== change.replay.state) await recordChange(trx, tools.actor, audited);
  });
  if (changed === null) throw unknownReplay(replayId);
  if (changed.refused) {
    throw new RequestError(
      'replay_finished',
      `Replay ${replayId} is ${changed.replay.state}: nothing to ${action}.`,
    );
  }
  return await replayOf(tools, wabaId, replayId);
}

async function knownSelection(
  database: Database,
  wabaId: string,
  given: GivenSelection,
): Promise<{ tenantId: string; selection: ReplaySelection }> {
  const { tenantId } = await knownWaba(database, wabaId);
  const selection = checkSelection(given, new Date());
  const { endpointId, deliveryIds } = selection;
  if (endpointId !== null && !(await listEndpoints(database, wabaId)).some(({ id }) => id === endpointId)) {
    throw new RequestError('unknown_endpoint', `There is no webhook endpoint ${endpointId}.`, 'endpointId');
  }
  const future = deliveryIds?.find((id) => msOfUuidV7(id) > Date.now() + CLOCK_SPARE_MS);
  if (future !== undefined) throw unknownDelivery(future);
  return { tenantId, selection };
}

async function groupsOf(
  database: Database,
  { wabaId, selection }: { wabaId: string; selection: ReplaySelection },
  turn: { tenantId: string; timeoutMs: number | null },
): Promise<SelectedGroup[]> {
  const count = (on: Database, beforeStatement?: () => Promise<void>) =>
    countSelection(on, wabaId, selection, MAX_DELIVERIES + 1, beforeStatement);
  // A list of ids is short.
  const isShort = selection.deliveryIds !== null;
  const groups = await (isShort ? count(database) : countInTurn(database, turn, count));
  const total = totalOf(groups);
  if (total > MAX_DELIVERIES) {
    const message = `More than ${MAX_DELIVERIES} deliveries are selected; narrow the selection down.`;
    throw new RequestError('replay_too_large', message);
  }
  const known = totalOf(groups.filter(({ isSent }) => isSent));
  if (selection.deliveryIds !== null && known < selection.deliveryIds.length) {
    throw await firstUnknown(database, wabaId, selection.deliveryIds);
  }
  return groups;
}

async function firstUnknown(
  database: Database,
  wabaId: string,
  deliveryIds: readonly string[],
): Promise<RequestError> {
  for (const id of deliveryIds) {
    const one = { deliveryIds: [id], endpointId: null, from: null, to: '', eventTypes: null, states: null };
    if ((await countSelection(database, wabaId, one, 1)).length === 0) return unknownDelivery(id);
  }
  return new RequestError('unknown_delivery', 'One of the deliveries does not exist.', 'deliveryIds');
}

function viewOf(replay: Replay): ReplayView {
  const { id, wabaId, state, selection, total, queued, cursor, requestedBy, createdAt, finishedAt } = replay;
  const { onlySinceUrl: _, ...shown } = selection;
  const { deliveryIds } = shown;
  const chosen = {
    ...shown,
    deliveryIds: deliveryIds?.map(publicDeliveryId) ?? null,
    eventIds: shown.eventIds?.map(publicEventId) ?? null,
    to: deliveryIds === null ? shown.to : null,
  };
  const progress = { total, queued, skipped: cursor.skipped };
  return { replayId: id, wabaId, state, selection: chosen, ...progress, requestedBy, createdAt, finishedAt };
}

function replayName(replayId: string): string {
  return `replay ${replayId}`;
}

function checkReplayId(replayId: string): string {
  return checkRowId('The id of the replay', replayId);
}

function mayNotRead(): RequestError {
  return new RequestError(
    'insufficient_scope',
    'Some of these events are older than the URL of their endpoint. To send them there, the API key needs the scope read_events or read too.',
  );
}

function unknownReplay(replayId: string): RequestError {
  return new RequestError('unknown_replay', `There is no replay ${replayId}.`);
}

function unknownDelivery(uuid: string): RequestError {
  return new RequestError(
    'unknown_delivery',
    `There is no delivery ${publicDeliveryId(uuid)}.`,
    'deliveryIds',
  );
}
