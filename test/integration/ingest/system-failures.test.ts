import { randomBytes } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { retryInbox } from '../../../src/ingest/bodies/quarantine.ts';
import { startIntake } from '../../../src/ingest/intake/intake-loop.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { type Database, openDatabase } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { drainInbox, intakeTools, storedEvents, takeInBatch } from '../../support/take-in.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { eventually } from '../../support/webhook-receiver.ts';

async function states(database: Database): Promise<string[]> {
  const rows = await query<{ state: string }>(database, 'select state from inbox order by id');
  return rows.map(({ state }) => state);
}

/** Opens the database as a role that may do everything with its tables, as installations do. */
async function asPlainRole(database: Database, url: string) {
  const role = `plain_${randomBytes(4).toString('hex')}`;
  await database.raw(
    `create role ${role} login password '${role}';
     grant all on all tables in schema public to ${role}; grant all on all sequences in schema public to ${role}`,
  );
  const plainUrl = Object.assign(new URL(url), { username: role, password: role }).href;
  const plain = openDatabase({ url: plainUrl, poolMax: 4, applicationName: 'plain', fixedPlans: true });
  onTestFinished(async () => {
    await plain.destroy();
    await database.raw(`drop owned by ${role}; drop role ${role}`);
  });
  return { plain, role };
}

test('a grant that is missing for a while loses no order and marks nothing as failed', async () => {
  const { database, url } = await seededDatabase();
  const { plain, role } = await asPlainRole(database, url);
  await database.raw(`revoke insert on events from ${role}`);
  let turns = 0;
  const tools = intakeTools(plain);
  const directClaims = () => {
    turns += 1;
    return null;
  };
  const intake = startIntake({ ...tools, directClaims });
  onTestFinished(() => intake.stop());
  await insertBodies(database, [fixtureBody('st_sent_v24')]);
  await insertBodies(database, [fixtureBody('st_delivered')]);
  await eventually('it was tried several times', () => turns > 4);
  expect(await states(database)).toEqual(['new', 'new']);
  await database.raw(`grant insert on events to ${role}`);
  await insertBodies(database, [fixtureBody('st_read')]);
  await eventually('all is taken in', async () => !(await states(database)).includes('new'));
  expect(await states(database)).toEqual(['done', 'done', 'done']);
  const told = (await storedEvents(database)).map(({ body }) => JSON.parse(body ?? '').data.status.status);
  expect(told).toEqual(['sent', 'delivered', 'read']);
});

/** Has the database refuse what contains this text, as it refuses bad data. */
async function refuse(database: Database, text: string): Promise<void> {
  await database.raw(
    `create function refuse() returns trigger language plpgsql as $$ begin
       if new.content like '%${text}%' then raise exception 'poison'; end if; return new; end $$;
     create trigger refuse before insert on messages for each row execute function refuse()`,
  );
}

describe('when nothing of several bodies can be stored', () => {
  const WABA = '900000000000101';

  /** A text message; the fixtures have none of the second WABA alone. */
  function textBody(wabaId: string, phoneNumberId: string, id: string, text: string): Buffer {
    const metadata = { display_phone_number: '12025550100', phone_number_id: phoneNumberId };
    const message = { id, from: '12025550143', timestamp: '1790000000', type: 'text', text: { body: text } };
    const value = { messaging_product: 'whatsapp', metadata, messages: [message] };
    const entry = [{ id: wabaId, changes: [{ field: 'messages', value }] }];
    return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
  }

  test('they wait, because that lies in the system', async () => {
    const { database } = await seededDatabase();
    await refuse(database, 'text');
    await insertBodies(database, [fixtureBody('in_text'), fixtureBody('in_edit_text')]);
    const tools = intakeTools(database);
    for (let n = 0; n < 12; n += 1) await expect(takeInBatch(tools)).rejects.toThrow(/2 upstream bodies/);
    expect(await states(database)).toEqual(['new', 'new']);
    await database.raw('drop trigger refuse on messages');
    await drainInbox(database);
    expect(await states(database)).toEqual(['done', 'done']);
  });

  test('until something of anybody can: a poisonous tenant stops no other, however much it sends', async () => {
    const { database } = await seededDatabase();
    await refuse(database, 'poison');
    const poison = Array.from({ length: 210 }, (_, n) =>
      textBody(WABA, '800000000000111', `wamid.p${n}`, 'poison'),
    );
    await insertBodies(database, poison);
    const tools = intakeTools(database);
    await expect(takeInBatch(tools)).rejects.toThrow(/upstream bodies can be stored/);
    await insertBodies(database, [textBody('900000000000202', '800000000000221', 'wamid.good', 'good')]);
    await takeInBatch(tools);
    expect((await storedEvents(database)).map(({ eventId }) => eventId)).toEqual(['wamid.good']);
    expect((await states(database)).at(-1)).toBe('done');
    await database.raw('drop trigger refuse on messages');
    await retryInbox(database, ['failed']);
    await drainInbox(database);
    expect(await storedEvents(database)).toHaveLength(211);
  });
});
