import { expect, test } from 'vitest';
import { splitUpstreamBody } from '../../../src/inbound/split/upstream-items.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
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

const entry = (wabaId: string, phoneNumberId: string, id: string) =>
  `{"id": "${wabaId}", "changes": [{"field": "messages", "value": {"metadata": {"phone_number_id": "${phoneNumberId}"},` +
  ` "statuses": [{"id": "wamid.${id}", "status": "sent", "recipient_id": "15550001111", "timestamp": 1760000000.0}]}}]}`;
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
