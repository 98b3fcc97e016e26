import { randomUUID } from 'node:crypto';
import type { Database, Transaction } from '../database/database.ts';
import { type DeliveryMaterial, deliveryMaterial } from '../database/deliveries.ts';
import {
  type ClaimedDelivery,
  leaseDelivery,
  returnClaimed,
  scheduleRetry,
} from '../database/delivery-claims.ts';
import { removeClaimed } from '../database/delivery-queue.ts';
import { setEndpointMode } from '../database/webhook-endpoints.ts';
import { publicDeliveryId, publicEventId } from '../domain/public-ids.ts';
import type { SecretBox } from '../domain/secret-box.ts';
import { endpointSecretPlace } from '../domain/secret-places.ts';
import { nextDelayMs } from '../domain/webhook/retry-schedule.ts';
import { webhookHeaders } from '../domain/webhook/webhook-headers.ts';
import { signStandard } from '../domain/webhook/webhook-signature.ts';
import { logAttempt, type SentRequest } from './attempt-log.ts';
import type { AttemptOutcome, SettledOutcome, UnattemptedOutcome } from './attempt-outcome.ts';
import { type AttemptVerdict, judgeAttempt } from './attempt-verdict.ts';
import type { HttpSender } from './http-sender.ts';

export type AttemptTools = {
  database: Database;
  sender: HttpSender;
  secretBox: SecretBox;
  /** Waits between attempts, in ms. */
  retryScheduleMs: readonly number[];
  /** Longest time from claim to the end of the response. */
  timeoutMs: number;
  /** Host and process, for the attempt log. */
  worker: string;
};

export type DeliveryRef = { deliveryId: string; deliveryDay: string; workflowId: string | null };

/** Wait before a delivery is looked at again whose lease was given back or lost. */
const LOOK_AGAIN_MS = 1_000;

/** How long a claim protects an attempt of up to `timeoutMs`: as much again, for recording it. */
export function leaseMsFor(timeoutMs: number): number {
  return timeoutMs * 2;
}

/** An attempt that has less than this share of its time left when it could send gives its lease back instead. */
const LEAST_SHARE_TO_SEND = 0.25;

type Claim = ClaimedDelivery & { token: string };

/**
 * Attempts one delivery: takes its lease, signs and POSTs the stored bytes, then records what came of it and, when
 * it is settled, promotes the next of its lane, in one transaction. Rejects only when the database fails; the
 * lease then ends by itself. The deadline counts from before the claim, so no POST outlives the lease.
 */
export async function attemptDelivery(tools: AttemptTools, ref: DeliveryRef): Promise<AttemptOutcome> {
  const deadlineMs = performance.now() + tools.timeoutMs;
  const token = randomUUID();
  const leaseMs = leaseMsFor(tools.timeoutMs);
  const answer = await leaseDelivery(tools.database, { ...ref, token, leaseMs });
  if (answer.kind === 'finished') return { state: 'finished' };
  if (answer.kind === 'wait') {
    return { state: 'waiting', reason: answer.lastError ?? 'not due yet', delayMs: answer.waitMs };
  }
  const claim = { ...answer.delivery, token };
  const material = await deliveryMaterial(tools.database, claim);
  if (material === null) return await dropOrphan(tools.database, claim);
  const timeoutMs = deadlineMs - performance.now();
  const inTime = timeoutMs >= tools.timeoutMs * LEAST_SHARE_TO_SEND;
  const obstacle = obstacleTo(material, inTime);
  if (obstacle !== null) {
    await returnClaimed(tools.database, claim);
    return obstacle;
  }
  const sent = await send(tools, claim, material, timeoutMs);
  return await settle(tools, ref, claim, material, sent);
}

/** Ends a delivery whose event or endpoint no longer exists: nothing could ever be sent. */
async function dropOrphan(database: Database, claim: Claim): Promise<AttemptOutcome> {
  await database.transaction((trx) => removeClaimed(trx, claim.deliveryId, claim.token));
  return { state: 'finished' };
}

/** Why a claimed delivery cannot be sent now; null when it can. */
function obstacleTo(material: DeliveryMaterial, inTime: boolean): UnattemptedOutcome | null {
  if (material.endpointMode !== 'open' && material.eventType !== 'test') {
    return { state: 'off', reason: `the endpoint is ${material.endpointMode}` };
  }
  if (!inTime) {
    return {
      state: 'waiting',
      reason: 'the database was too slow to attempt in time',
      delayMs: LOOK_AGAIN_MS,
    };
  }
  return null;
}

async function send(
  tools: AttemptTools,
  claim: Claim,
  material: DeliveryMaterial,
  timeoutMs: number,
): Promise<SentRequest> {
  const { body } = material;
  const startedAt = new Date();
  const timestampSeconds = Math.floor(startedAt.getTime() / 1000);
  const webhookId = publicEventId(claim.eventUuid);
  const secrets = secretsOf(tools.secretBox, claim.endpointId, material);
  const headers = webhookHeaders({
    webhookId,
    timestampSeconds,
    signature: signStandard({ secrets, id: webhookId, timestampSeconds, body }),
    eventType: material.eventType,
    eventId: material.eventId,
    deliveryId: publicDeliveryId(claim.deliveryId),
    attempt: claim.attempts + 1,
    sequence: material.sequence,
    replay: false,
  });
  const result = await tools.sender.send({ url: material.endpointUrl, headers, body, timeoutMs });
  return { wabaId: material.wabaId, url: material.endpointUrl, startedAt, headers, result };
}

/** Newest first; while a rotation is under way the old secret signs too. */
function secretsOf(secretBox: SecretBox, endpointId: string, material: DeliveryMaterial): string[] {
  const sealed = [material.secretSealed, material.previousSecretSealed].filter((secret) => secret !== null);
  return sealed.map((secret) => secretBox.open(secret, endpointSecretPlace(endpointId)));
}

async function settle(
  tools: AttemptTools,
  ref: DeliveryRef,
  claim: Claim,
  material: DeliveryMaterial,
  sent: SentRequest,
): Promise<AttemptOutcome> {
  const verdict = judgeAttempt(sent.result);
  const attempt = claim.attempts + 1;
  const outcome =
    material.eventType === 'test'
      ? testOutcome(verdict, attempt)
      : outcomeOf(verdict, attempt, tools.retryScheduleMs);
  return await tools.database.transaction(async (trx): Promise<AttemptOutcome> => {
    if (!(await moveOn(trx, claim, outcome))) {
      return { state: 'waiting', reason: 'the lease ended before the attempt did', delayMs: LOOK_AGAIN_MS };
    }
    const { worker } = tools;
    await logAttempt(trx, claim, sent, outcome, { worker, workflowId: ref.workflowId });
    if (outcome.state === 'held') await disableGone(trx, claim.endpointId, material);
    return outcome;
  });
}

/** The test event has one attempt: it shows at once what the endpoint does. */
function testOutcome(verdict: AttemptVerdict, attempt: number): SettledOutcome {
  if (verdict.kind === 'delivered') return { state: 'delivered', statusCode: verdict.statusCode, attempt };
  return { state: 'failed', reason: verdict.reason, attempt };
}

function outcomeOf(verdict: AttemptVerdict, attempt: number, schedule: readonly number[]): SettledOutcome {
  if (verdict.kind === 'delivered') return { state: 'delivered', statusCode: verdict.statusCode, attempt };
  const { reason } = verdict;
  if (verdict.kind === 'gone') return { state: 'held', reason, attempt };
  const { retryAfterMs } = verdict;
  const delayMs = nextDelayMs({ schedule, attemptsMade: attempt, retryAfterMs, random: Math.random });
  return delayMs === null
    ? { state: 'failed', reason, attempt }
    : { state: 'retrying', reason, attempt, delayMs };
}

/** Moves the queue row on; false when the claim is no longer ours, and then nothing may be recorded. */
async function moveOn(trx: Transaction, claim: Claim, outcome: SettledOutcome): Promise<boolean> {
  if (outcome.state === 'retrying') {
    return await scheduleRetry(trx, { ...claim, attempts: outcome.attempt, delayMs: outcome.delayMs });
  }
  if (outcome.state === 'held') return await returnClaimed(trx, { ...claim, attempts: outcome.attempt });
  return await removeClaimed(trx, claim.deliveryId, claim.token);
}

/** An endpoint that was changed since the claim has had its answer already. */
async function disableGone(trx: Transaction, endpointId: string, material: DeliveryMaterial): Promise<void> {
  await setEndpointMode(trx, material.wabaId, {
    id: endpointId,
    version: material.endpointVersion,
    mode: 'disabled',
    reason: 'the endpoint answered 410 Gone',
  });
}
