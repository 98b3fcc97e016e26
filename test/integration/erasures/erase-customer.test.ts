import { describe, expect, test } from 'vitest';
import { sweepRepeats } from '../../../src/ingest/bodies/repeats.ts';
import { verifyReport } from '../../../src/ops/erasures/erasure-report.ts';
import { eraseConversation, eraseCustomer, erasureOf } from '../../../src/ops/erasures/erasures.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { objectsHolding, tablesHolding } from '../../support/database-scan.ts';
import { storedEvents, takeIn } from '../../support/take-in.ts';
import {
  auditExport,
  bodyOf,
  contactOf,
  count,
  messageOf,
  startErasureWorld,
  statusOf,
  WABA,
} from './erasure-world.ts';
import { ASHA, BO, customerIdOf, fill, othersOf, tracesOf } from './filled-world.ts';

describe('erasing a customer', () => {
  test('leaves nothing of them in any table or object, and everyone else as they were', async () => {
    const world = await startErasureWorld();
    const { database, config, tools } = world;
    const { keys } = await fill(world);
    const before = await othersOf(database);
    expect((await tablesHolding(database, [ASHA.waId])).length).toBeGreaterThan(12);
    expect((await objectsHolding(config, [ASHA.name])).holding.sort()).toEqual([...keys].sort());
    const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
    await world.erase(erasureId);
    expect(await tablesHolding(database, [...tracesOf(ASHA), 'ref-asha-1', ...keys.slice(1)])).toEqual([]);
    const exported = await auditExport(database);
    expect(exported).toContain('erasure');
    expect(tracesOf(ASHA).filter((trace) => exported.includes(trace))).toEqual([]);
    expect((await objectsHolding(config, [ASHA.name])).holding).toEqual([]);
    expect(await othersOf(database)).toEqual(before);
    expect(world.cancelled.filter((id) => id.startsWith('delivery/')).length).toBeGreaterThan(4);
    expect(await count(database, 'workflow_tasks')).toBe(0);
    const queued = `event_uuid not in (select id from events)`;
    expect(await count(database, 'delivery_queue', queued)).toBe(0);
    expect(await count(database, 'delivery_queue')).toBeGreaterThan(0);
    const done = await erasureOf(tools, WABA, erasureId);
    expect(done).toMatchObject({ state: 'done', kind: 'customer', requestedBy: 'operator command' });
    expect(done.counts).toMatchObject({
      contacts: 1,
      conversations: 1,
      files: 1,
      uploads: 1,
      idempotencyKeys: 1,
    });
    expect(verifyReport(done.report, tools.encryptionKeys)).toBe('valid');
  });

  test('what upstream repeats or says of it later does not come back; new messages are accepted', async () => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    const { body } = await fill(world);
    const { erasureId } = await eraseCustomer(tools, WABA, {
      customerId: await customerIdOf(database, ASHA),
    });
    await world.erase(erasureId);
    const before = await storedEvents(database);
    // Deduplication keys are kept for 14 days; the tombstones hold on without them.
    await execute(database, 'delete from dedup_keys');
    await takeIn(
      database,
      bodyOf([{ contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 1)] }]),
      bodyOf([
        { statuses: [statusOf(ASHA, 'out-1', 'read')] },
        { field: 'No field' },
        { contacts: [contactOf(BO)], messages: [messageOf(BO, 'new')] },
      ]),
    );
    await sweepRepeats(tools);
    expect(await tablesHolding(database, tracesOf(ASHA))).toEqual([]);
    const added = (await storedEvents(database)).slice(before.length);
    expect(added.map(({ eventId }) => eventId)).toEqual([BO.wamid('new')]);
    expect(body.includes(ASHA.waId)).toBe(true);
    await takeIn(database, bodyOf([{ contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 'later')] }]));
    expect((await storedEvents(database)).at(-1)?.eventId).toBe(ASHA.wamid('later'));
    expect(await customerIdOf(database, ASHA)).not.toBe('0');
  });

  test('a repeat is taken out in a later sweep, whether its sweep died, was cut off, or had passed it over', async () => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    await fill(world);
    const { erasureId } = await eraseCustomer(tools, WABA, {
      customerId: await customerIdOf(database, ASHA),
    });
    await world.erase(erasureId);
    await execute(database, 'delete from dedup_keys');
    const repeat = () =>
      takeIn(database, bodyOf([{ contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 1)] }]));
    const notes = () => count(database, 'erased_repeats');
    await repeat();
    let transactions = 0;
    const dying: Database['transaction'] = async (work) => {
      transactions += 1;
      if (transactions > 1) throw new Error('killed');
      return await database.transaction(work);
    };
    const raw: Database['raw'] = async (...given) => {
      if (transactions > 1) throw new Error('killed');
      return await database.raw(...given);
    };
    await expect(sweepRepeats({ database: { ...database, raw, transaction: dying } })).rejects.toThrow(
      'killed',
    );
    expect(await notes()).toBe(1);
    const ending = new AbortController();
    const cutting: Database['transaction'] = async (work) => {
      const result = await database.transaction(work);
      ending.abort();
      return result;
    };
    await sweepRepeats({ database: { ...database, transaction: cutting } }, ending.signal);
    expect(await notes()).toBe(1);
    expect(await tablesHolding(database, tracesOf(ASHA))).not.toEqual([]);
    let pages = -1;
    const behind: Database['transaction'] = async (work) => {
      const result = await database.transaction(work);
      pages += 1;
      const [left] = await query(
        database,
        `select 1 from inbox where position('${ASHA.waId}'::bytea in body) > 0`,
      );
      if (pages > 0 && left === undefined && pages < 100) {
        pages = 100;
        await repeat();
      }
      return result;
    };
    await sweepRepeats({ database: { ...database, transaction: behind } });
    expect(await notes()).toBe(1);
    await sweepRepeats(tools);
    expect(await tablesHolding(database, tracesOf(ASHA))).toEqual([]);
    expect(await notes()).toBe(0);
  });

  test('a conversation goes with its customer if they have no other', async () => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    await fill(world);
    const [row] = await query<{ id: string }>(
      database,
      'select c.id from conversations c join contacts k on k.id = c.contact_id where k.wa_id = :waId',
      { waId: ASHA.waId },
    );
    const { erasureId } = await eraseConversation(tools, WABA, row?.id ?? '');
    await world.erase(erasureId);
    const kept = (await tablesHolding(database, [ASHA.waId, ASHA.name])).map((found) => found.split(':')[0]);
    // What they wrote in a group is another conversation.
    expect([...new Set(kept)].map((name) => name?.replace(/_\d+$/, '')).sort()).toEqual(
      expect.arrayContaining(['messages']),
    );
    expect(await count(database, 'messages', `group_sender is null and content like '%${ASHA.waId}%'`)).toBe(
      0,
    );
    expect(await count(database, 'contacts', `wa_id = '${ASHA.waId}'`)).toBe(0);
  });
});
