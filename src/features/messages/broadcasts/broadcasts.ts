import { type Audited, recordChange } from '../../../platform/audit/audit.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { checkingMember, checkName, checkRowId, RequestError } from '../../../platform/request-input.ts';
import { requireNumber } from '../../accounts/accounts.ts';
import type { SendLimits } from '../../keys/send-limits.ts';
import { sendProblem } from '../send/check-send.ts';
import { readSendTimes } from '../send/send-times.ts';
import { lookAtTemplate } from '../send/sent-template.ts';
import { messageTo } from './broadcast-message.ts';
import {
  listRecipients,
  type RecipientCounts,
  type RecipientPage,
  type RecipientWalk,
} from './broadcast-recipients.ts';
import {
  type Broadcast,
  type BroadcastState,
  countBroadcasts,
  findBroadcast,
  findBroadcastForOperator,
  insertBroadcast,
  listBroadcasts,
  lockBroadcastsOf,
} from './broadcast-store.ts';
import { recentCounts } from './recent-counts.ts';
import {
  type BroadcastVerb,
  broadcastName,
  switchBroadcast,
  tooMany,
  unknownBroadcast,
} from './switch-broadcast.ts';

const MOST_UNFINISHED = 100;
const UNFINISHED: readonly BroadcastState[] = ['draft', 'scheduled', 'running', 'paused'];
const MOST_LISTED = 100;

type BroadcastTools = { database: Database } & Audited;

type NewBroadcast = { name: string; phoneNumberId: string; template: object; sendAt?: string | undefined };

/** `erased`: recipients whose customers were erased; they are in no other count. */
export type BroadcastView = Broadcast & { counts: RecipientCounts & { erased: number } };

/** What a limited key may send cannot be promised for recipients that are added later. Throws RequestError `insufficient_scope`. */
function refuseLimited({ maxMessagesPerDay, recipients }: SendLimits): void {
  if (maxMessagesPerDay === null && recipients === 'any') return;
  throw new RequestError(
    'insufficient_scope',
    'The API key has limits on its messages. A broadcast needs a key with the scope send and without limits.',
  );
}

/**
 * A draft: nothing is sent before its start. `limits` are those of the API key, if it is one. Throws RequestError: `invalid_value`, `unknown_phone_number`,
 * `insufficient_scope`, `too_many_broadcasts`, and for a template that upstream would refuse.
 */
export async function createBroadcast(
  { database, actor }: BroadcastTools,
  wabaId: string,
  given: NewBroadcast,
  { requestedBy, limits }: { requestedBy: string; limits: SendLimits | null },
): Promise<BroadcastView> {
  if (limits !== null) refuseLimited(limits);
  const name = await checkingMember('name', () => checkName('The name', given.name));
  const { phoneNumberId } = given;
  const template = JSON.stringify(given.template);
  const message = messageTo({ phoneNumberId, template }, { recipient: '12025550143', parameters: null });
  const wrong = sendProblem(message);
  if (wrong !== null) throw new RequestError('invalid_value', wrong.message, wrong.param);
  const sendAt = readSendTimes({ sendAt: given.sendAt })?.sendAt ?? null;
  await requireNumber(database, wabaId, phoneNumberId);
  await refuseStopped(database, wabaId, message);
  const id = await database.transaction(async (trx) => {
    await lockBroadcastsOf(trx, wabaId);
    const unfinished = await countBroadcasts(trx, wabaId, UNFINISHED, MOST_UNFINISHED);
    if (unfinished >= MOST_UNFINISHED) throw tooMany(`${MOST_UNFINISHED} broadcasts that have not ended`);
    const row = { wabaId, phoneNumberId, name, template, sendAt, requestedBy };
    const broadcastId = await insertBroadcast(trx, row);
    const about = { wabaId, target: broadcastName(broadcastId) };
    await recordChange(trx, actor, { ...about, action: 'broadcast.created' });
    return broadcastId;
  });
  return await broadcastOf({ database }, wabaId, id);
}

/** Its variables are judged with each recipient's parameters. */
async function refuseStopped(
  database: Database,
  wabaId: string,
  message: Parameters<typeof lookAtTemplate>[2],
): Promise<void> {
  const { problem } = await lookAtTemplate(database, wabaId, message);
  if (problem === null || problem.code === 'template_variables_wrong') return;
  throw new RequestError(problem.code, problem.message, problem.param);
}

/** Throws RequestError: `invalid_value`, `unknown_broadcast`. */
export async function broadcastOf(
  { database }: Pick<BroadcastTools, 'database'>,
  wabaId: string,
  broadcastId: string,
): Promise<BroadcastView> {
  const broadcast = await knownBroadcast(database, wabaId, broadcastId);
  const counts = await recentCounts(database, broadcast);
  const { failedByCode, ...states } = counts;
  const left = Object.values(states).reduce((sum, n) => sum + n, 0);
  return { ...broadcast, counts: { ...counts, erased: Math.max(0, broadcast.recipients - left) } };
}

async function knownBroadcast(database: Database, wabaId: string, id: string): Promise<Broadcast> {
  const broadcastId = checkRowId('The id of the broadcast', id);
  const broadcast = await findBroadcast(database, { wabaId, broadcastId });
  if (broadcast === null) throw unknownBroadcast(id);
  return broadcast;
}

/** For operators, who address broadcasts of every WABA. Throws RequestError: `invalid_value`, `unknown_broadcast`. */
export async function wabaOfBroadcast(
  { database }: Pick<BroadcastTools, 'database'>,
  broadcastId: string,
): Promise<string> {
  const found = await findBroadcastForOperator(database, checkRowId('The id of the broadcast', broadcastId));
  if (found === null) throw unknownBroadcast(broadcastId);
  return found.wabaId;
}

export async function broadcastsOf(
  { database }: Pick<BroadcastTools, 'database'>,
  wabaId: string,
  { beforeId = null as string | null, limit = MOST_LISTED } = {},
): Promise<Broadcast[]> {
  return await listBroadcasts(database, wabaId, { beforeId, limit });
}

/** Throws RequestError: `invalid_value`, `unknown_broadcast`. */
export async function recipientsOf(
  { database }: Pick<BroadcastTools, 'database'>,
  { wabaId, broadcastId }: { wabaId: string; broadcastId: string },
  walk: RecipientWalk,
): Promise<RecipientPage> {
  const { id } = await knownBroadcast(database, wabaId, broadcastId);
  return await listRecipients(database, id, walk);
}

/**
 * Works while Temporal is away too. Throws RequestError: `invalid_value`, `unknown_broadcast`, `broadcast_finished`, `broadcast_not_started`,
 * `broadcast_started`, `broadcast_empty`, `too_many_broadcasts`, `insufficient_scope`.
 */
export async function changeBroadcast(
  { database, actor }: BroadcastTools,
  { wabaId, broadcastId }: { wabaId: string; broadcastId: string },
  verb: BroadcastVerb,
  limits: SendLimits | null,
): Promise<BroadcastView> {
  if (limits !== null) refuseLimited(limits);
  const ids = { wabaId, broadcastId: checkRowId('The id of the broadcast', broadcastId) };
  const note = async (trx: Transaction, { action }: { action: string }) =>
    await recordChange(trx, actor, { wabaId, action, target: broadcastName(broadcastId) });
  await switchBroadcast(database, ids, verb, note);
  return await broadcastOf({ database }, wabaId, broadcastId);
}
