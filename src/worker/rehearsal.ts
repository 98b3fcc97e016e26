import { randomInt, randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openEndpoint } from '../engine/deliveries/attempt/endpoint-cache.ts';
import { newRecording } from '../engine/deliveries/attempt/made-attempt.ts';
import { type SendableEndpoint, sendDelivery } from '../engine/deliveries/attempt/send-delivery.ts';
import { settleAttempts } from '../engine/deliveries/attempt/settle-attempts.ts';
import { makeEndpointHealth } from '../engine/deliveries/breaker.ts';
import { EndpointLimiter } from '../engine/deliveries/loop/attempt-limits.ts';
import { DueFinder } from '../engine/deliveries/loop/claiming.ts';
import { ENDPOINT_SECRET } from '../engine/endpoint/endpoint-secrets.ts';
import { loadEndpointSettings } from '../engine/endpoint/endpoint-settings.ts';
import { newWebhookSecret } from '../engine/endpoint/webhook-signature.ts';
import { findOldestBodies, insertParts, takeNewBodies } from '../engine/inbox/bodies.ts';
import { intakeEpochs, readEpochs } from '../engine/inbox/intake-lock.ts';
import { shardOf } from '../engine/inbox/shards.ts';
import { type ClaimedDelivery, claimDue } from '../engine/queue/claim.ts';
import type { DirectClaimer } from '../engine/queue/enqueue.ts';
import { findNumberOwners } from '../features/accounts/number-owners.ts';
import { commitItems } from '../ingest/intake/commit-items.ts';
import { makeInboxFloor } from '../ingest/intake/inbox-floor.ts';
import { tryIntakeLocks } from '../ingest/intake/intake-locks.ts';
import { isPlain, KnownCustomers } from '../ingest/intake/known-customers.ts';
import { ingestGuessed } from '../ingest/intake/one-turn.ts';
import { originsOf, sortItems } from '../ingest/intake/owners.ts';
import { readBody } from '../ingest/intake/portions.ts';
import { findCustomersOf } from '../ingest/intake/read-ahead.ts';
import type { Owned } from '../ingest/split/upstream-items.ts';
import type { SealedDatabase } from '../platform/crypto/sealed-database.ts';
import { makeAddressGuard } from '../platform/http/outbound-url.ts';
import { leaseMsFor } from '../platform/lease-clock.ts';
import { type Transaction, undone } from '../platform/postgres/database.ts';
import { execute } from '../platform/postgres/sql.ts';
import { type HttpSender, makeHttpSender } from '../platform/sender/http-sender.ts';

/** As many connections as are busy at the same time in calm traffic. */
export const REHEARSED_CONNECTIONS = 3;

/** Bodies per round. Only messages draw ids that show, so they are few; the code is the same for the most part. */
const ROUNDS = [
  { body: messageBody, count: 1, isAtOnce: false },
  { body: messageBody, count: 1, isAtOnce: true },
  { body: messageOfAnother, count: 1, isAtOnce: true },
  { body: statusesBody, count: 5, isAtOnce: true },
  ...Array.from({ length: 4 }, () => ({ body: statusesBody, count: 5, isAtOnce: false })),
] as const;
const PARSED_ONLY = 100;

const TIMEOUT_MS = 5_000;
const LEASE_MS = leaseMsFor(TIMEOUT_MS);
const NO_SHARD = -1;
const LOCK_WAIT_MS = 200;

/** Above every id that is ever drawn. */
const FIRST_ID = 2 ** 52;

/**
 * Ingests, claims, sends and records a few made-up events, by the functions that do it for real ones, in transactions
 * that are rolled back and to its own listener: connections, prepared statements, plans and compiled code are there
 * before the first real event comes. It leaves nothing behind; should it fail, nothing is missing but speed.
 */
export async function rehearse(tools: SealedDatabase): Promise<void> {
  const server = await openListener();
  const guard = makeAddressGuard({ allowCidrs: ['127.0.0.1/32'] });
  const limits = { connectTimeoutMs: TIMEOUT_MS, totalTimeoutMs: TIMEOUT_MS };
  const sender = makeHttpSender({ guard, allowHttp: true, ...limits });
  const { port } = server.address() as AddressInfo;
  const stage = { ...tools, sender, url: `http://127.0.0.1:${port}/` };
  try {
    await Promise.all(Array.from({ length: REHEARSED_CONNECTIONS }, () => rehearseOnce(stage)));
  } finally {
    await sender.close();
    server.closeAllConnections();
    server.close();
  }
}

type Stage = SealedDatabase & { sender: HttpSender; url: string };

async function rehearseOnce({ database, secretBox, sender, url }: Stage): Promise<void> {
  const id = String(FIRST_ID + randomInt(2 ** 47));
  const accounts = { endpointId: id, wabaId: `0${id}`, phoneNumberId: `0${id}` };
  for (let n = 0; n < PARSED_ONLY; n += 1) readBody(received(accounts, messageBody(accounts)));
  await undone(database, async (trx) => {
    const secretSealed = secretBox.seal(newWebhookSecret(), ENDPOINT_SECRET.place(accounts.endpointId));
    await insertRehearsalAccounts(trx, { ...accounts, url, secretSealed });
    const [settings] = await loadEndpointSettings(trx, [accounts.endpointId]);
    if (settings === undefined) return;
    const defaults = { timeoutMs: TIMEOUT_MS, retryScheduleMs: [TIMEOUT_MS], workflows: 'auto' as const };
    const endpoint = openEndpoint(settings, { secretBox, defaults });
    await prepareLooks(trx);
    for (const { body, count, isAtOnce } of ROUNDS) {
      const bodies = Array.from({ length: count }, () => body(accounts));
      let { token, claimed } = await takeIn(trx, accounts, { bodies, isAtOnce });
      while (claimed.length > 0) {
        const followerToken = randomUUID();
        claimed = await deliver(trx, { sender, endpoint, token, claimed, followerToken });
        token = followerToken;
      }
    }
  });
}

async function prepareLooks(trx: Transaction): Promise<void> {
  await Promise.all([
    tryIntakeLocks(trx, []),
    intakeEpochs(trx),
    readEpochs(trx, []),
    findNumberOwners(trx, ['']),
    takeNewBodies(trx, [{ shard: NO_SHARD, fromId: '0', fromDay: '-infinity' }], { bodies: 1, bytes: 1 }),
    findOldestBodies(trx, [{ shard: NO_SHARD, fromId: '0', fromDay: '-infinity' }]),
    insertParts(trx, []),
  ]);
  await new DueFinder({ database: trx, limiter: new EndpointLimiter() }).find(1);
  await claimDue(trx, { shares: [], limit: 0, token: randomUUID(), leaseMs: LEASE_MS });
}

async function takeIn(
  trx: Transaction,
  { endpointId, wabaId }: RehearsalAccounts,
  { bodies, isAtOnce }: { bodies: readonly Buffer[]; isAtOnce: boolean },
): Promise<{ token: string; claimed: ClaimedDelivery[] }> {
  const read = bodies.map((body) => readBody(received({ wabaId }, body)));
  const items = read.flatMap((one) => one.items);
  const held = new Set([shardOf(wabaId)]);
  const { owned } = await sortItems(trx, items, { owners: new Map(), held, origins: originsOf(read) });
  const claimer = { token: randomUUID(), leaseMs: LEASE_MS, take: (id: string) => id === endpointId };
  if (isAtOnce) return { token: claimer.token, claimed: await ingestAtOnce(trx, { bodies, owned, claimer }) };
  const { answers } = await commitItems(trx, owned, claimer);
  return { token: claimer.token, claimed: await answers };
}

/** The one statement for plain items: without an epoch, as no shard is locked. */
async function ingestAtOnce(
  trx: Transaction,
  given: { bodies: readonly Buffer[]; owned: readonly Owned[]; claimer: DirectClaimer },
): Promise<ClaimedDelivery[]> {
  const owned = given.owned.flatMap(({ item, ...owner }) => (isPlain(item) ? [{ item, ...owner }] : []));
  const find = await findCustomersOf(trx, new KnownCustomers(), owned);
  const items = owned.flatMap((one) => {
    const customer = find?.(one) ?? null;
    return customer === null ? [] : [{ owned: one, customer }];
  });
  // Others may rehearse at the same time, and only one transaction has a shard.
  const shard = -randomInt(2, 2 ** 15);
  const [wabaId = ''] = owned.map((one) => one.wabaId);
  const bodies = given.bodies.map((body) => ({ body, signedFor: null, wabaId, shard }));
  const guess = { shards: [{ shard, floor: makeInboxFloor(), known: null }], bodies, items };
  const ways = { claimer: given.claimer, waitMs: LOCK_WAIT_MS, onSent: () => undefined };
  return (await ingestGuessed(trx, guess, ways)) ?? [];
}

/** Sends what was claimed, records it, and returns what followed in its lanes, claimed with `followerToken`. */
async function deliver(
  trx: Transaction,
  run: {
    sender: HttpSender;
    endpoint: SendableEndpoint;
    token: string;
    claimed: readonly ClaimedDelivery[];
    followerToken: string;
  },
): Promise<ClaimedDelivery[]> {
  const { sender, endpoint, token, claimed, followerToken } = run;
  const made = await Promise.all(
    claimed.map(async (claim) => {
      const delivery = { ...claim, body: claim.body ?? Buffer.alloc(0) };
      const sent = await sendDelivery(sender, endpoint, delivery, TIMEOUT_MS);
      const shown = { isCalm: false, workflowId: null };
      return { ...claim, token, endpoint, isProbe: false, sent, ...shown, recording: newRecording() };
    }),
  );
  const behind = new Set(claimed.map(({ deliveryId }) => deliveryId));
  const { followers } = await settleAttempts(
    { ...SETTLEMENT, database: trx, health: makeEndpointHealth() },
    made,
    {
      token: followerToken,
      leaseMs: LEASE_MS,
      behind,
    },
  );
  return followers;
}

const SETTLEMENT = {
  runLimits: { perEndpoint: 0, overall: 0, mayStart: () => false, takeStart: () => false },
  gate: { isOpen: () => true, check: async () => true },
  onTrouble: () => undefined,
  worker: 'rehearsal',
  onAttempt: () => undefined,
} as const;

function received({ wabaId }: Pick<RehearsalAccounts, 'wabaId'>, body: Buffer) {
  return { day: '', id: '0', shard: NO_SHARD, wabaId, body, signedFor: null, notes: null, partly: null };
}

/** Of a customer who never wrote. */
function messageOfAnother(accounts: RehearsalAccounts): Buffer {
  return messageBody(accounts, `${accounts.wabaId}1`);
}

function messageBody(accounts: RehearsalAccounts, from = accounts.wabaId): Buffer {
  const text = { body: 'Is it ready?' };
  return upstreamBody(accounts, {
    contacts: [{ profile: { name: 'rehearsal' }, wa_id: from }],
    messages: [{ from, id: randomUUID(), timestamp: '1790000000', type: 'text', text }],
  });
}

function statusesBody(accounts: RehearsalAccounts): Buffer {
  const status = { id: randomUUID(), timestamp: '1790000000', recipient_id: accounts.wabaId };
  return upstreamBody(accounts, {
    statuses: ['sent', 'delivered', 'read'].map((name) => ({ ...status, status: name })),
  });
}

function upstreamBody({ wabaId, phoneNumberId }: RehearsalAccounts, content: object): Buffer {
  const metadata = { display_phone_number: '', phone_number_id: phoneNumberId };
  const value = { messaging_product: 'whatsapp', metadata, ...content };
  const entry = [{ id: wabaId, changes: [{ field: 'messages', value }] }];
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
}

async function openListener(): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume().once('end', () => response.end());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  return server;
}

type RehearsalAccounts = {
  /** Of the tenant as well; given, so that none is drawn. */
  endpointId: string;
  wabaId: string;
  phoneNumberId: string;
};

const LOCK_TIMEOUT_MS = 200;
const STATEMENT_TIMEOUT_MS = 2_000;

async function insertRehearsalAccounts(
  trx: Transaction,
  {
    endpointId,
    wabaId,
    phoneNumberId,
    url,
    secretSealed,
  }: RehearsalAccounts & { url: string; secretSealed: string },
): Promise<void> {
  await trx.raw(
    `set local lock_timeout = ${LOCK_TIMEOUT_MS}; set local statement_timeout = ${STATEMENT_TIMEOUT_MS}`,
  );
  await execute(
    trx,
    `with tenant as (
       insert into tenants (id, business_name) overriding system value values (cast(:endpointId as bigint), 'rehearsal') returning id
     ), waba as (
       insert into wabas (waba_id, tenant_id) select cast(:wabaId as text), id from tenant returning waba_id
     ), number as (
       insert into phone_numbers (phone_number_id, waba_id, display_phone_number, verified_name)
       select cast(:phoneNumberId as text), waba_id, '', '' from waba
     )
     insert into webhook_endpoints (id, waba_id, url, secret_sealed)
     select cast(:endpointId as bigint), waba_id, cast(:url as text), cast(:secretSealed as text) from waba`,
    { endpointId, wabaId, phoneNumberId, url, secretSealed },
  );
}
