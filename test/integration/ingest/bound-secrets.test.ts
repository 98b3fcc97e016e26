import { describe, expect, test } from 'vitest';
import { savePhoneNumber } from '../../../src/features/accounts/accounts.ts';
import { followNumbers } from '../../../src/features/accounts/followed-numbers.ts';
import { retryInbox } from '../../../src/ingest/bodies/quarantine.ts';
import { splitUpstreamBody } from '../../../src/ingest/split/upstream-items.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { drainInbox, storedEvents } from '../../support/take-in.ts';
import {
  NUMBER,
  OTHER_NUMBER,
  OTHER_WABA,
  signed,
  startTestApi,
  testConfig,
  WABA,
} from '../api/api-harness.ts';

const FREE = 'secret-of-the-operator';
const BOUND = 'secret-of-one-tenant';
const OF_TWO = 'secret-of-both-tenants';

async function start() {
  const config = testConfig({
    HELIOGRAPH_UPSTREAM_APP_SECRETS: `${FREE},${BOUND}@${WABA},${OF_TWO}@${OTHER_WABA}+${WABA}`,
  });
  const { app, database } = await startTestApi(async () => ({ config }));
  return {
    database,
    send: async (body: string, secret: string) => {
      const headers = signed(body, secret);
      return (await app.inject({ method: 'POST', url: '/upstream/webhook', headers, payload: body }))
        .statusCode;
    },
    stored: async () => {
      const rows = await query<{ body: Buffer }>(database, 'select body from inbox order by id');
      return rows.map(({ body }) => body.toString());
    },
  };
}

const changeOf = (phoneNumberId: string, id: string) =>
  `{"field": "messages", "value": {"metadata": {"phone_number_id": "${phoneNumberId}"},` +
  ` "statuses": [{"id": "wamid.${id}", "status": "sent", "recipient_id": "15550001111", "timestamp": 1760000000.0}]}}`;
const entry = (wabaId: string, phoneNumberId: string, id: string) =>
  `{"id": "${wabaId}", "changes": [${changeOf(phoneNumberId, id)}]}`;
const bodyOf = (...entries: string[]) =>
  `{"object":"whatsapp_business_account", "entry":[ ${entries.join(' , ')} ]}`;

test('a secret that is bound to WABAs speaks for them and for no other', async () => {
  const { send, stored } = await start();
  const own = bodyOf(entry(WABA, NUMBER, 'own'));
  const unknownNumber = bodyOf(entry(WABA, '111', 'unknown'));
  const foreign = bodyOf(entry(OTHER_WABA, OTHER_NUMBER, 'foreign'));
  // It says to be its own and is about the number of another.
  const disguised = bodyOf(entry(WABA, OTHER_NUMBER, 'disguised'));
  for (const body of [own, unknownNumber]) expect(await send(body, BOUND)).toBe(200);
  for (const body of [foreign, disguised, '{"entry":', 'x']) expect(await send(body, BOUND)).toBe(401);
  for (const body of [foreign, '{"entry":']) expect(await send(body, FREE)).toBe(200);
  expect(await send(foreign, OF_TWO)).toBe(200);
  expect(await send(own, `${BOUND}@${WABA}`)).toBe(401);
  expect(await stored()).toEqual([own, unknownNumber, foreign, '{"entry":', foreign]);
});

test('of a body with entries of both, those of the secret are taken as they are, and the others are not', async () => {
  const { send, stored } = await start();
  const entries = [
    entry(OTHER_WABA, OTHER_NUMBER, 'first'),
    entry(WABA, NUMBER, 'second'),
    entry(WABA, OTHER_NUMBER, 'third'),
  ];
  expect(await send(bodyOf(...entries), BOUND)).toBe(200);
  // Stored apart by WABA: what belongs to none is what stands in place of the foreign entries.
  const bodies = await stored();
  const split = bodies.map((body) => splitUpstreamBody(Buffer.from(body)));
  expect(split.flatMap(({ items }) => items.map(({ phoneNumberId }) => phoneNumberId))).toEqual([NUMBER]);
  expect(split.flatMap(({ quarantined }) => quarantined.map(({ reason }) => reason))).toEqual([
    'unreadable_item',
    'unreadable_item',
  ]);
  expect(bodies.join('\n')).toContain(entries[1]);
  expect(bodies.join('\n')).not.toMatch(/first|third/);
});

describe('a number that is in no WABA yet and becomes the number of another tenant', () => {
  const VICTIM_NUMBER = '800000000000999';
  const WAITING_NUMBER = '800000000000888';
  const number = (phoneNumberId: string) => ({
    phoneNumberId,
    displayPhoneNumber: '',
    verifiedName: '',
    qualityRating: null,
  });
  const forged = bodyOf(
    `{"id": "${WABA}", "changes": [${[WAITING_NUMBER, VICTIM_NUMBER].map((id) => changeOf(id, id)).join()}]}`,
  );

  /** The body is accepted before the number is known, and taken in at once or later. */
  async function sendThenAddNumber({
    takeInFirst,
    secret = BOUND,
  }: {
    takeInFirst: boolean;
    secret?: string;
  }) {
    const { send, database } = await start();
    expect(await send(forged, secret)).toBe(200);
    if (takeInFirst) await drainInbox(database);
    await savePhoneNumber(database, OTHER_WABA, number(VICTIM_NUMBER));
    const follow = (...ids: string[]) =>
      followNumbers({ database }, WABA, [NUMBER, ...ids].map(number), new Date());
    const events = async () => {
      await drainInbox(database);
      return (await storedEvents(database)).map(({ wabaId, eventId }) => [wabaId, eventId]);
    };
    return { database, follow, events };
  }
  const own = [WABA, `wamid.${WAITING_NUMBER}`];

  test('gets nothing of a body that a bound secret signed, when the other number of the body comes', async () => {
    const { database, follow, events } = await sendThenAddNumber({ takeInFirst: true });
    expect(await query(database, 'select state from inbox')).toEqual([{ state: 'waiting' }]);
    await follow(WAITING_NUMBER);
    expect(await events()).toEqual([own]);
    expect(await query(database, 'select state, notes from inbox')).toMatchObject([
      { state: 'quarantined', notes: [{ reason: 'not_signed_for_waba' }] },
    ]);
  });

  test('gets nothing of it when it leaves quarantine', async () => {
    const { database, follow, events } = await sendThenAddNumber({ takeInFirst: true });
    await follow();
    expect(await query(database, 'select state from inbox')).toEqual([{ state: 'quarantined' }]);
    expect(await retryInbox(database, ['quarantined'])).toBe(1);
    expect(await events()).toEqual([]);
    await follow(WAITING_NUMBER);
    expect(await events()).toEqual([own]);
  });

  test('gets nothing of it when the number is added between acknowledgement and intake', async () => {
    const { follow, events } = await sendThenAddNumber({ takeInFirst: false });
    expect(await events()).toEqual([]);
    await follow(WAITING_NUMBER);
    expect(await events()).toEqual([own]);
  });

  test('gets nothing that waited for it in another WABA, whoever signed it', async () => {
    const { database, follow, events } = await sendThenAddNumber({ takeInFirst: true, secret: FREE });
    await follow(WAITING_NUMBER);
    expect(await events()).toEqual([own]);
    expect(await retryInbox(database, ['quarantined'])).toBe(1);
    expect(await events()).toEqual([own]);
    expect(await query(database, 'select state, notes from inbox')).toMatchObject([
      { state: 'quarantined', notes: [{ reason: 'phone_number_not_of_waba' }] },
    ]);
  });
});
