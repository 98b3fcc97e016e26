import { setTimeout as sleep } from 'node:timers/promises';
import { isTokenError } from '../../../platform/graph/graph-error.ts';
import {
  AccessTokenProblem,
  openAccessToken,
  tokenProblemOf,
  tryNoteTokenRefused,
} from '../../accounts/access-tokens.ts';
import { noteLaterMessage } from '../../customers/customers.ts';
import { pausedForToken } from '../broadcasts/pause-for-token.ts';
import { beginAtOnce } from './begin-at-once.ts';
import { pathAfterRefusal } from './marketing-path.ts';
import { withUpstreamMedia } from './message-content.ts';
import { endedMeanwhile } from './opted-out.ts';
import { requeueMessage, type SendTurn, takeSendTurn } from './outbound-messages.ts';
import type { PassShare } from './pass-share.ts';
import { followPhoneAlias } from './recipient-conversations.ts';
import {
  recordAccepted,
  recordAgain,
  recordFailed,
  recordOver,
  recordUnknown,
  type SendMessageInput,
  untilRecorded,
} from './record-send.ts';
import { refusedByNow } from './refused-by-now.ts';
import { reopenSchedule } from './scheduled-messages.ts';
import { loggedSendError, type SendError, sendErrorText } from './send-error.ts';
import { sendRetryDelayMs } from './send-pacing.ts';
import { judgeSend, type SendVerdict, unknownOutcome } from './send-verdict.ts';
import { makeTemplateCategories, type TemplateCategories } from './template-categories.ts';
import {
  forgetRefusedMedia,
  giveMedia,
  later,
  makeMediaSlots,
  type SendMessageTools,
  type UploadRun,
} from './upload-media.ts';

/** How it ended. `over`: an earlier run had ended it, or a status had reported it. */
export type SendResult = { outcome: 'accepted' | 'failed' | 'unknown' | 'finished'; summary: string };

const HOUR_MS = 3_600_000;
const PAUSED_WAIT_MS = 5_000;

/** After the time for the answer an attempt needs some for recording; then it is lost. */
const RECORDING_MS = 5_000;

/** `sitsOutMs`: longer waits for a turn are for another attempt. */
export type SendRun = Pick<UploadRun, 'attempt' | 'signal'> & { sitsOutMs: number; pass?: PassShare };

/** What the attempts of a process share. */
export function makeSendMemory() {
  return { slots: makeMediaSlots(), categories: makeTemplateCategories() };
}

/** Waits for the message's turn, calls upstream once and records what came of it. Throws the failure after which to try again. */
export async function makeSend(
  tools: SendMessageTools,
  input: SendMessageInput,
  run: SendRun & ReturnType<typeof makeSendMemory>,
): Promise<SendResult> {
  const open = () => openAccessToken(tools, input.wabaId);
  const token = await (run.pass?.token(open) ?? open()).catch((error: unknown) => {
    if (error instanceof AccessTokenProblem) return error;
    throw error;
  });
  if (token instanceof AccessTokenProblem) return await failForToken(tools, input, token);
  const turn = await waitForTurn(tools, input, run);
  switch (turn.kind) {
    case 'media': {
      const error = await giveMedia(tools, input, turn, { ...run, token });
      return error === null
        ? await makeSend(tools, input, run)
        : await failQueued(tools, input, error, 'a message cannot be sent without its file');
    }
    case 'send':
      return await attempt(tools, input, turn, { ...run, token });
    case 'ended':
      return await failQueued(tools, input, turn.error, 'a scheduled message is not sent any more');
    case 'wait':
      throw later(`Waits for ${turn.reason}.`, turn.waitMs);
    case 'under_way':
      // Two passes overlap when the workflow of the first is ended: the attempt of the other records its end, and the task makes sure of it.
      if (run.pass !== undefined) return { outcome: 'finished', summary: 'Another pass sends it.' };
      throw later('An attempt is under way elsewhere, or was lost with its worker.', turn.waitMs);
    case 'lost':
      return await endLost(tools, input);
    case 'over':
      await recordOver(tools.database, input);
      return { outcome: 'finished', summary: `It was ${turn.state} before.` };
  }
}

/** Ends a message as failed that is not to be sent any more; one that is being sent is waited for. */
export async function giveUpSend(tools: SendMessageTools, input: SendMessageInput): Promise<SendResult> {
  const message = 'The message was given up before it was sent.';
  const error: SendError = { code: 'cancelled', message, upstream: null };
  if (await recordFailed(tools.database, input, error, ['queued'])) {
    return { outcome: 'failed', summary: message };
  }
  return await endLostAttempt(tools, input, error);
}

async function waitForTurn(
  tools: SendMessageTools,
  input: SendMessageInput,
  { signal, sitsOutMs, pass }: SendRun,
): Promise<SendTurn> {
  const { database, sending } = tools;
  const limits = {
    timeoutMs: sending.timeoutMs + RECORDING_MS,
    retryMs: sending.retryHours * HOUR_MS,
    messagesPerSecond: sending.messagesPerSecond,
  };
  if (pass !== undefined) {
    const begun = await beginAtOnce(database, input, { ...limits, perSecond: pass.perSecond });
    if (begun !== null) {
      await sleep(Math.max(0, begun.waitMs));
      return begun.turn;
    }
  }
  for (;;) {
    const turn = await takeSendTurn(database, input.wabaId, input.messageId, limits);
    if (turn.kind !== 'wait' || turn.waitMs > sitsOutMs) return turn;
    await sleep(turn.waitMs, undefined, { signal });
  }
}

type Leaving = { token: string; categories: TemplateCategories; pass?: PassShare };

/** Why a message whose turn has come is not sent after all; null: it is. */
async function endedByNow(
  { database, sender }: SendMessageTools,
  input: SendMessageInput,
  turn: Extract<SendTurn, { kind: 'send' }>,
  { token, categories, pass }: Leaving,
): Promise<SendError | null> {
  const sent = { ...input, ...turn };
  const refused = turn.isScheduled ? await refusedByNow(database, sent, pass?.findTemplate) : null;
  if (refused !== null || turn.isWanted) return refused;
  return await endedMeanwhile(database, sent, (template) =>
    categories.categoryOf(input.wabaId, template, async () => ({ client: sender, token })),
  );
}

/** The call under way is never cut short: its answer is worth waiting for, also while the worker stops. */
async function attempt(
  tools: SendMessageTools,
  input: SendMessageInput,
  turn: Extract<SendTurn, { kind: 'send' }>,
  leaving: Leaving,
): Promise<SendResult> {
  const { database, sender, sending, logger } = tools;
  const { token, pass } = leaving;
  const { phoneNumberId, upstreamPath, payloadJson, upstreamMedia, conversationId } = turn;
  const ended = await endedByNow(tools, input, turn, leaving);
  if (ended !== null) {
    await untilRecorded(() => recordFailed(database, input, ended));
    return { outcome: 'failed', summary: sendErrorText(ended) };
  }
  const note = () => noteLaterMessage(database, conversationId, input.messageId);
  if (turn.isScheduled && pass === undefined) await note();
  const payload = upstreamMedia.size === 0 ? payloadJson : withUpstreamMedia(payloadJson, upstreamMedia);
  const first = await sender.sendMessage(phoneNumberId, payload, token, upstreamPath);
  const other = await pathAfterRefusal(database, turn, first);
  const outcome = other === null ? first : await sender.sendMessage(phoneNumberId, payload, token, other);
  await forgetRefusedMedia(tools, turn, outcome);
  const verdict = judgeSend(outcome, { ...turn, retryMs: turn.retryMs ?? sending.retryHours * HOUR_MS });
  // What a pass has accepted is noted with others.
  if (pass !== undefined && verdict.kind !== 'accepted') await note();
  if (outcome.kind === 'refused' && isTokenError(outcome) && 'error' in verdict) {
    await tryNoteTokenRefused(tools, input, verdict.error.message);
    if (await pausedForToken(tools, input, { token, of: turn.broadcast }))
      return await goBackIntoPause(tools, input, turn, verdict.error);
  }
  switch (verdict.kind) {
    case 'accepted': {
      const accepted = { ...verdict, waId: phoneOf(verdict.waId, turn) };
      if (pass === undefined) await untilRecorded(() => recordAccepted(database, input, accepted));
      else await pass.accepted({ ...input, ...accepted, conversationId });
      await followAlias(tools, input, turn.recipient, verdict.waId);
      return { outcome: 'accepted', summary: 'Upstream accepted it.' };
    }
    case 'again':
      return await goBack(tools, input, turn, verdict);
    case 'failed':
      await untilRecorded(() => recordFailed(database, input, verdict.error));
      logger.warn({ ...input, error: loggedSendError(verdict.error) }, 'a message was refused permanently');
      return { outcome: 'failed', summary: sendErrorText(verdict.error) };
    case 'unknown':
      await untilRecorded(() => recordUnknown(database, input, verdict.error));
      logger.warn(
        { ...input, error: loggedSendError(verdict.error) },
        'it is unknown whether a message was sent',
      );
      return { outcome: 'unknown', summary: sendErrorText(verdict.error) };
  }
}

/** Upstream repeats the id of a group where it names the phone of a person. */
function phoneOf(waId: string | null, { recipient }: { recipient: string }): string | null {
  return waId === recipient && !/^\d+$/.test(recipient) ? null : waId;
}

/** Records the way back, then throws the failure after which the next attempt comes. */
async function goBack(
  { database }: SendMessageTools,
  input: SendMessageInput,
  turn: Extract<SendTurn, { kind: 'send' }>,
  verdict: Extract<SendVerdict, { kind: 'again' }>,
): Promise<never> {
  const waitMs = sendRetryDelayMs(turn.attempt, verdict.retryAfterMs);
  const thisAttempt = { ...input, ...turn };
  await untilRecorded(() => recordAgain(database, thisAttempt, verdict, waitMs));
  throw later(sendErrorText(verdict.error), waitMs);
}

/** Upstream took nothing of it: it waits with the others of its broadcast until that is resumed. */
async function goBackIntoPause(
  { database }: SendMessageTools,
  input: SendMessageInput,
  turn: Extract<SendTurn, { kind: 'send' }>,
  error: SendError,
): Promise<never> {
  const redrawPair = false;
  await untilRecorded(() =>
    database.transaction(async (trx) => {
      await requeueMessage(trx, { ...input, ...turn }, { error: JSON.stringify(error), redrawPair });
      await reopenSchedule(trx, input.messageId);
    }),
  );
  throw later('Waits for its broadcast.', PAUSED_WAIT_MS);
}

async function failForToken(
  tools: SendMessageTools,
  input: SendMessageInput,
  problem: AccessTokenProblem,
): Promise<SendResult> {
  await tryNoteTokenRefused(tools, input, tokenProblemOf(problem));
  if (await pausedForToken(tools, input, { token: null, of: null }))
    throw later('Waits for its broadcast.', PAUSED_WAIT_MS);
  tools.logger.warn({ ...input, err: problem }, 'a message cannot be sent without an access token');
  const message = 'The WABA has no usable upstream access token.';
  const error: SendError = { code: 'access_token_missing', message, upstream: null };
  if (!(await recordFailed(tools.database, input, error, ['queued']))) {
    return await endLostAttempt(tools, input, error);
  }
  return { outcome: 'failed', summary: problem.message };
}

async function failQueued(
  tools: SendMessageTools,
  input: SendMessageInput,
  error: SendError,
  logged: string,
): Promise<SendResult> {
  const { database, logger } = tools;
  const ended = await untilRecorded(() => recordFailed(database, input, error, ['queued']));
  if (!ended) return await endLostAttempt(tools, input, error);
  logger.warn({ ...input, error: loggedSendError(error) }, logged);
  return { outcome: 'failed', summary: sendErrorText(error) };
}

async function endLost({ database, logger }: SendMessageTools, input: SendMessageInput): Promise<SendResult> {
  const error = unknownOutcome('the process that sent it ended before it had recorded one');
  await recordUnknown(database, input, error);
  logger.warn({ ...input, error: loggedSendError(error) }, 'it is unknown whether a message was sent');
  return { outcome: 'unknown', summary: sendErrorText(error) };
}

/** Ends a message that is not queued: once the attempt that it is in has ended, or must have been lost. */
async function endLostAttempt(
  tools: SendMessageTools,
  input: SendMessageInput,
  error: SendError,
): Promise<SendResult> {
  const limits = { timeoutMs: 0, retryMs: 0, messagesPerSecond: 1 };
  const turn = await takeSendTurn(tools.database, input.wabaId, input.messageId, limits);
  if (turn.kind === 'under_way') throw later('An attempt is under way.', turn.waitMs);
  if (turn.kind === 'lost') return await endLost(tools, input);
  if (turn.kind === 'over') {
    await recordOver(tools.database, input);
    return { outcome: 'finished', summary: 'It had ended before.' };
  }
  // It went back into the queue meanwhile, and its turn is ours: no other sends it.
  await recordFailed(tools.database, input, error, ['queued', 'sending']);
  return { outcome: 'failed', summary: sendErrorText(error) };
}

/** Best effort: without it the customer's answer opens its own conversation. */
async function followAlias(
  { database, logger }: SendMessageTools,
  input: SendMessageInput,
  recipient: string,
  waId: string | null,
): Promise<void> {
  const isAlias = waId !== null && waId !== recipient && /^\d+$/.test(waId) && /^\d+$/.test(recipient);
  if (!isAlias) return;
  await database
    .transaction((trx) => followPhoneAlias(trx, input.wabaId, recipient, waId))
    .catch((error: unknown) => logger.warn({ ...input, err: error }, 'a phone alias was not stored'));
}
