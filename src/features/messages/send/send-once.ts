import type { SealedDatabase } from '../../../platform/crypto/sealed-database.ts';
import type { AccountClient } from '../../../platform/graph/graph-client.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { RateLimitError, RequestError } from '../../../platform/request-input.ts';
import type { StartTask } from '../../../platform/temporal/workflow-starter.ts';
import { openAccessToken } from '../../accounts/access-tokens.ts';
import { requireNumber } from '../../accounts/accounts.ts';
import {
  findIdempotencyKey,
  holdIdempotencyKey,
  IDEMPOTENCY_KEY,
  type IdempotencyKey,
  type KnownKey,
  type SendResponse,
  saveIdempotentResponse,
} from './idempotency-keys.ts';
import { pathFor } from './marketing-path.ts';
import { findMediaUploads } from './media-uploads.ts';
import { type MediaUse, mediaUsesOf } from './message-content.ts';
import { CategoryNeeded } from './opted-out.ts';
import { findSendProgress, type SendPath, type SendProgress } from './outbound-messages.ts';
import { isOutcome, type OutcomeWaiter } from './outcome-waiter.ts';
import { HOLD_MS, queueMessage, type Sender } from './queue-message.ts';
import { SEND_REFUSALS } from './send-refusals.ts';
import type { SendRequest } from './send-request.ts';
import { sendMessageTask } from './send-task.ts';
import { readSendTimes, type SendTimes } from './send-times.ts';
import { lookAtTemplate } from './sent-template.ts';
import type { TemplateCategories } from './template-categories.ts';
import { messageOf } from './upstream-payload.ts';

type Respond = (messageId: string, progress: SendProgress) => SendResponse;

export type SendCall = {
  account: Sender & { tenantId: string };
  body: SendRequest;
  key: IdempotencyKey | null;
  respond: Respond;
  upstreamPath?: SendPath;
};

type Responded = { response: SendResponse; replayed: boolean };

type SendTools = {
  database: Database;
  accounts: SealedDatabase;
  upstream: { client(): Promise<AccountClient> };
  sends: { start: StartTask; outcomes: OutcomeWaiter; categories: TemplateCategories };
};

/**
 * Sends a message once, waits for its outcome, and gives the response, or repeats it. Throws RequestError: `invalid_value`, `unknown_phone_number`,
 * `unknown_media`, `media_expired`, `wrong_media_type`, `idempotency_key_reused`, `idempotency_key_in_flight`, for a template that
 * upstream would refuse, for what the API key may not send, and for what the customer wants no more.
 */
export async function sendOnce(context: SendTools, call: SendCall): Promise<Responded> {
  const { database, sends } = context;
  const { account, body, key } = call;
  const { wabaId } = account;
  const known = key === null ? null : await findIdempotencyKey(database, wabaId, key);
  if (key !== null && known !== null) return await repeat(context, call, key, known);
  const times = readSendTimes(body);
  await requireNumber(database, wabaId, body.phoneNumberId);
  await checkMedia(database, wabaId, body, times?.sendAt);
  const category = await checkTemplate(database, wabaId, body);
  const upstreamPath =
    call.upstreamPath === 'marketing_messages'
      ? call.upstreamPath
      : await pathFor(database, body.phoneNumberId, category);
  const messageId = await queueKnown(context, { ...call, upstreamPath, times }, category);
  // The key was taken between our look and our attempt to take it.
  if (messageId === null) return await sendOnce(context, call);
  if (times === null) void sends.start({ ...sendMessageTask(wabaId, messageId), tenantId: account.tenantId });
  return { response: await finalResponse(context, call, messageId), replayed: false };
}

/** A customer who wants no marketing makes the category of a template count: it is looked up, and the message tried again. */
async function queueKnown(
  { database, accounts, upstream, sends }: SendTools,
  call: SendCall & { times: SendTimes | null },
  known: string | undefined,
): Promise<string | null> {
  const { account, body } = call;
  const queue = async (category?: string | null) =>
    await queueMessage(database, account, body, { ...call, ...(category !== undefined && { category }) });
  try {
    return await queue(known);
  } catch (error) {
    if (!(error instanceof CategoryNeeded)) throw error;
    const { wabaId } = account;
    const ask = async () => {
      const token = await openAccessToken(accounts, wabaId);
      return { client: await upstream.client(), token };
    };
    return await queue(await sends.categories.categoryOf(wabaId, body.template, ask));
  }
}

/** Waits for the outcome; its response is the response to all repetitions. */
async function finalResponse(
  { database, sends }: SendTools,
  { account: { wabaId }, key, respond }: SendCall,
  messageId: string,
): Promise<SendResponse> {
  const progress = await sends.outcomes.wait(wabaId, messageId);
  const response = respond(messageId, progress);
  return key === null ? response : await saveIdempotentResponse(database, wabaId, key, response);
}

const RETRY_AFTER_MS = 1_000;

/**
 * A request that came before: its response once more; its outcome, when that is known although the process that should
 * have responded is gone; 409 while it is under way.
 */
async function repeat(
  context: SendTools,
  call: SendCall,
  key: IdempotencyKey,
  known: KnownKey,
): Promise<Responded> {
  const { database } = context;
  const { wabaId } = call.account;
  if (!known.sameRequest) {
    throw new RequestError('idempotency_key_reused', SEND_REFUSALS.idempotency_key_reused, IDEMPOTENCY_KEY);
  }
  if (known.response !== null) return { response: known.response, replayed: true };
  const progress = await findSendProgress(database, wabaId, known.messageId);
  const isAbandoned = known.heldMs === 0 && (await holdIdempotencyKey(database, wabaId, key, HOLD_MS));
  if (isAbandoned || (progress !== null && isOutcome(progress))) {
    return { response: await finalResponse(context, call, known.messageId), replayed: true };
  }
  const message = SEND_REFUSALS.idempotency_key_in_flight;
  throw new RateLimitError(message, RETRY_AFTER_MS, 'idempotency_key_in_flight');
}

/** Throws RequestError, which names the member. */
async function checkMedia(
  database: Database,
  wabaId: string,
  request: SendRequest,
  neededAt = new Date(),
): Promise<void> {
  const uses = mediaUsesOf(messageOf(request));
  if (uses.length === 0) return;
  const uuids = new Set(uses.flatMap(({ uuid }) => uuid ?? []));
  const found = await findMediaUploads(database, wabaId, [...uuids]);
  const files = new Map(found.map((file) => [file.uuid, file]));
  for (const use of uses) checkUse(use, files.get(use.uuid ?? ''), neededAt);
}

/**
 * The category of the template of a message, where it is known. Throws RequestError for what upstream would refuse.
 */
async function checkTemplate(
  database: Database,
  wabaId: string,
  request: SendRequest,
): Promise<string | undefined> {
  const { problem, category } = await lookAtTemplate(database, wabaId, request);
  if (problem === null) return category;
  throw new RequestError(problem.code, problem.message, problem.param);
}

function checkUse(
  { param, kind }: MediaUse,
  file: { mediaType: string; mimeType: string; isExpired: boolean; expiresAt: Date } | undefined,
  neededAt: Date,
): void {
  if (file === undefined) throw new RequestError('unknown_media', SEND_REFUSALS.unknown_media, param);
  if (file.isExpired || file.expiresAt < neededAt)
    throw new RequestError('media_expired', SEND_REFUSALS.media_expired, param);
  if (file.mediaType === kind) return;
  const message = `The file is of type ${file.mediaType} (${file.mimeType}) and cannot be sent as ${kind}.`;
  throw new RequestError('wrong_media_type', message, param);
}
