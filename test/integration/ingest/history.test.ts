import { describe, expect, test } from 'vitest';
import { ingestHistory } from '../../../src/ingest/fields/history.ts';
import { eraseCustomer } from '../../../src/ops/erasures/erasures.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { housekeepingSteps } from '../../../src/worker/housekeeping.ts';
import { tablesHolding } from '../../support/database-scan.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { storedEvents, takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { NUMBER, OTHER_WABA, startTestApi, WABA } from '../api/api-harness.ts';
import { client } from '../deliveries/event-fixtures.ts';
import { startErasureWorld } from '../erasures/erasure-world.ts';
import { ASHA, BO, fill } from '../erasures/filled-world.ts';

const BUSINESS = '12025550100';
const CUSTOMER = '12025550143';
const NEVER = new AbortController().signal;

function body(field: string, value: object, wabaId = WABA): Buffer {
  const metadata = { display_phone_number: BUSINESS, phone_number_id: NUMBER };
  const change = { field, value: { messaging_product: 'whatsapp', metadata, ...value } };
  return Buffer.from(JSON.stringify({ entry: [{ id: wabaId, changes: [change] }] }));
}

type Thread = { id: unknown; messages: unknown };

function chunk(phase: number, order: number, threads: readonly Thread[], wabaId = WABA): Buffer {
  const metadata = { phase, chunk_order: order, progress: 50 };
  return body('history', { history: [{ metadata, threads }] }, wabaId);
}

/** A message of the customer, or of the business; `at` in seconds. */
function message(id: string, at: number, members: object = {}) {
  const text = { type: 'text', text: { body: `Text of ${id}` } };
  return {
    from: CUSTOMER,
    id,
    timestamp: String(at),
    ...text,
    history_context: { status: 'READ' },
    ...members,
  };
}

const own = (id: string, at: number, status = 'DELIVERED') =>
  message(id, at, { from: BUSINESS, to: CUSTOMER, history_context: { status } });

const thread = (...messages: unknown[]): Thread => ({ id: CUSTOMER, messages });

async function world() {
  const api = await startTestApi();
  const { call } = await client(api);
  const conversations = async () => (await call('GET', '/api/external/conversations')).json().data;
  const only = async () =>
    (await call('GET', `/api/external/conversations/${(await conversations())[0].id}`)).json();
  const messages = async () => {
    const [{ id }] = await conversations();
    return (await call('GET', `/api/external/conversations/${id}/messages?order=asc&limit=100`)).json().data;
  };
  return { ...api, call, conversations, only, messages };
}

const ids = (list: { metaMessageId: string }[]) => list.map(({ metaMessageId }) => metaMessageId);

async function ingest(database: Database): Promise<void> {
  await ingestHistory(database, NEVER, 0);
}

describe('the history of the WhatsApp Business app', () => {
  test('comes into its conversations by phase and chunk, in both directions, beside what was there', async () => {
    const { database, conversations, messages } = await world();
    await takeIn(database, body('messages', { messages: [message('wamid.live', 1_790_000_000)] }));
    await takeIn(
      database,
      chunk(1, 2, [thread(message('wamid.5', 500))]),
      chunk(0, 1, [
        thread(own('wamid.2', 1_200), message('wamid.1', 1_100), message('wamid.live', 1_790_000_000)),
      ]),
      chunk(1, 1, [thread(own('wamid.3', 300, 'ERROR'), message('wamid.4', 400))]),
    );
    expect(ids(await messages())).toEqual(['wamid.live']);
    await ingest(database);
    expect(await conversations()).toHaveLength(1);
    const list = await messages();
    const shown = list.map((m: Record<string, unknown>) => [
      m.metaMessageId,
      m.direction,
      m.origin,
      m.status,
    ]);
    expect(shown).toEqual([
      ['wamid.live', 'inbound', undefined, null],
      ['wamid.1', 'inbound', 'history', null],
      ['wamid.2', 'outbound', 'history', 'delivered'],
      ['wamid.3', 'outbound', 'history', 'failed'],
      ['wamid.4', 'inbound', 'history', null],
      ['wamid.5', 'inbound', 'history', null],
    ]);
    expect(await query(database, 'select 1 from history_pieces')).toEqual([]);
  });

  test('is no webhook for who did not ask, and once one event for who did', async () => {
    const { database, messages } = await world();
    await addEndpoint(database, WABA, 'https://plain.example/hook');
    const asked = await addEndpoint(database, WABA, 'https://asked.example/hook', ['upstream.history']);
    const many = Array.from({ length: 250 }, (_, n) => message(`wamid.${n}`, n));
    await takeIn(
      database,
      chunk(0, 1, [thread(...many.toReversed())]),
      chunk(0, 1, [thread(...many.toReversed())]),
    );
    await ingest(database);
    expect(ids(await messages())).toEqual(many.slice(0, 100).map(({ id }) => id));
    const [count] = await query<{ n: number }>(database, 'select count(*)::integer as n from messages');
    expect(count?.n).toBe(250);
    expect((await storedEvents(database)).map(({ type }) => type)).toEqual(['upstream.history']);
    const waiting = await query(database, 'select endpoint_id::text as id from delivery_queue');
    expect(waiting).toEqual([{ id: asked.id }]);
  });

  test('keeps the window that a message of today opened, however much older comes behind it', async () => {
    const { database, only } = await world();
    const hourAgo = Math.floor(Date.now() / 1_000) - 3_600;
    const old = Array.from({ length: 120 }, (_, n) => message(`wamid.old${n}`, 1_700_000_000 + n));
    await takeIn(database, chunk(1, 1, [thread(...old)]));
    await ingest(database);
    expect((await only()).customerServiceWindow.isOpen).toBe(false);
    await takeIn(database, body('messages', { messages: [message('wamid.live', hourAgo - 60)] }));
    const more = old.map((one) => ({ ...one, id: `${one.id}b` }));
    await takeIn(database, chunk(0, 1, [thread(...more)]));
    await ingest(database);
    const at = (seconds: number) => new Date(seconds * 1_000).toISOString();
    expect((await only()).customerServiceWindow).toMatchObject({
      isOpen: true,
      lastInboundAt: at(hourAgo - 60),
    });
    await takeIn(
      database,
      chunk(0, 2, [thread(message('wamid.app', hourAgo))]),
      chunk(0, 3, [thread(...old)]),
    );
    await ingest(database);
    expect((await only()).customerServiceWindow).toMatchObject({ isOpen: true, lastInboundAt: at(hourAgo) });
  });

  test('waits until its chunks are there, and housekeeping brings it in', async () => {
    const { database, messages, conversations } = await world();
    await takeIn(database, chunk(0, 1, [thread(message('wamid.1', 1))]));
    const objectStore = { remove: () => Promise.reject(new Error('history has no files')) };
    const retentionDays = { inbox: 14, events: 90, attempts: 30 };
    const steps = housekeepingSteps({ database, objectStore, logger: silentLogger, retentionDays });
    const step = steps.find(({ name }) => name === 'history');
    await step?.run(NEVER);
    expect(await conversations()).toEqual([]);
    await execute(database, `update history_pieces set received_at = now() - interval '1 minute'`);
    await step?.run(NEVER);
    expect(ids(await messages())).toEqual(['wamid.1']);
  });

  test('goes on behind a piece that cannot be stored', async () => {
    const { database, messages } = await world();
    await takeIn(
      database,
      chunk(0, 1, [thread(message('wamid.1', 1))]),
      chunk(0, 2, [thread(message('wamid.2', 1))]),
    );
    await execute(database, `update history_pieces set messages = 'torn' where chunk = 1`);
    await expect(ingest(database)).rejects.toThrow('1 pieces of history cannot be stored');
    expect(ids(await messages())).toEqual(['wamid.2']);
    await ingest(database);
  });

  test('harms nothing when it is unlike any history, of another WABA, or of a number that is gone', async () => {
    const { database, conversations, messages } = await world();
    await takeIn(
      database,
      body('history', { history: 'none' }),
      body('history', { history: [{ errors: [{ code: 2_593_109, message: 'declined' }] }] }),
      chunk(-1, 1.5, [
        { id: null, messages: [message('wamid.no', 1)] },
        { id: 'x'.repeat(9_000), messages: [] },
      ]),
      chunk(2 ** 40, 1, [
        thread(null, 1, [], {}, message('y'.repeat(9_000), 1), message('wamid.\u0000\ud800', 1)),
      ]),
      chunk(0, 1, [
        { id: `+${CUSTOMER}`, messages: [message('wamid.ok', 2, { type: 7, timestamp: 'soon' })] },
      ]),
      chunk(0, 1, [thread(message('wamid.foreign', 1))], OTHER_WABA),
    );
    await ingest(database);
    expect(await conversations()).toHaveLength(1);
    expect(await messages()).toHaveLength(2);
    expect(await query(database, 'select distinct state from inbox')).toEqual([{ state: 'done' }]);
    await takeIn(database, chunk(0, 9, [thread(message('wamid.late', 1))]));
    await execute(database, `update phone_numbers set detached = true where phone_number_id = '${NUMBER}'`);
    await ingest(database);
    expect(await messages()).toHaveLength(2);
    expect(await query(database, 'select 1 from history_pieces')).toEqual([]);
  });

  test('goes with the customer who is erased, waiting or not, and what was erased does not come back', async () => {
    const built = await startErasureWorld();
    const { database } = built;
    await fill(built);
    const of = (who: { waId: string }, id: string) => ({
      id: who.waId,
      messages: [message(id, 1, { from: who.waId })],
    });
    await takeIn(database, chunk(0, 1, [of(ASHA, 'wamid.asha'), of(BO, 'wamid.bo')]));
    await ingest(database);
    await takeIn(database, chunk(0, 2, [of(ASHA, 'wamid.asha2'), of(BO, 'wamid.bo2')]));
    const { erasureId } = await eraseCustomer(built.tools, WABA, { phone: ASHA.waId });
    await built.erase(erasureId);
    expect(await tablesHolding(database, [ASHA.waId, 'wamid.asha'])).toEqual([]);
    await takeIn(database, chunk(0, 3, [of(ASHA, 'wamid.asha'), of(ASHA, 'wamid.new')]));
    await ingest(database);
    const left = await query<{ id: string }>(
      database,
      `select upstream_id as id from messages where origin is not null order by upstream_id`,
    );
    expect(left.map(({ id }) => id)).toEqual(['wamid.bo', 'wamid.bo2', 'wamid.new']);
  });
});
