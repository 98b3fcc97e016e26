import { expect, test } from 'vitest';
import { ACCESS_TOKEN } from '../../../src/features/accounts/access-tokens.ts';
import { lookUpNumbers } from '../../../src/features/accounts/look-up-numbers.ts';
import { listTemplates } from '../../../src/features/accounts/templates.ts';
import { retentionSteps } from '../../../src/ops/erasures/retention/retention.ts';
import type { TemplatePage } from '../../../src/platform/graph/graph-calls.ts';
import { noAnswer } from '../../../src/platform/graph/graph-error.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { orders } from '../../support/orders.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { takeIn } from '../../support/take-in.ts';
import { freshTenant, testSecretBox } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';
import { fixtureBodyTo } from '../../support/upstream-fixtures.ts';

const START = Math.floor(Date.now() / 1_000) - 600;
const OFFER = {
  message_template_id: 500000000000001,
  message_template_name: 'offer',
  message_template_language: 'en-US',
};

async function world() {
  const { database } = await testWorkerDatabase();
  const { wabaId } = await freshTenant(database);
  const report = (field: string, seconds: number, value: object) =>
    Buffer.from(
      JSON.stringify({ entry: [{ id: wabaId, time: START + seconds, changes: [{ field, value }] }] }),
    );
  return { database, wabaId, report, known: () => known(database, wabaId) };
}

async function known(database: Database, wabaId: string) {
  const all = await listTemplates(database, wabaId, {}, { after: [], limit: 100 });
  return all.map(({ name, language, status, category, quality, rejectedReason }) =>
    [name, language, status, category, quality, rejectedReason].join(' '),
  );
}

test('reports say state, category, quality and reason of a template, whatever comes first', async () => {
  for (const order of orders([0, 1, 2, 3])) {
    const { database, report, known } = await world();
    const bodies = [
      report('message_template_status_update', 1, {
        ...OFFER,
        event: 'APPROVED',
        reason: 'NONE',
        message_template_category: 'UTILITY',
      }),
      report('message_template_status_update', 2, { ...OFFER, event: 'PAUSED', reason: 'LOW_QUALITY' }),
      report('template_category_update', 3, {
        ...OFFER,
        previous_category: 'UTILITY',
        new_category: 'MARKETING',
      }),
      report('message_template_quality_update', 4, {
        ...OFFER,
        previous_quality_score: 'GREEN',
        new_quality_score: 'RED',
      }),
    ];
    for (const index of order) await takeIn(database, bodies[index] ?? Buffer.of());
    expect([order, await known()]).toEqual([order, ['offer en_US PAUSED MARKETING RED LOW_QUALITY']]);
  }
});

test('a change of category that upstream only announces moves nothing, and odd reports are of no template', async () => {
  const { database, wabaId, report, known } = await world();
  await takeIn(
    database,
    report('message_template_status_update', 1, {
      ...OFFER,
      event: 'REINSTATED',
      message_template_category: 'UTILITY',
    }),
    report('template_category_update', 2, {
      ...OFFER,
      new_category: 'UTILITY',
      correct_category: 'MARKETING',
      category_update_timestamp: START + 86_400,
    }),
    report('template_category_update', 3, { ...OFFER, new_category: 'MARKETING' }),
    report('message_template_status_update', 4, { event: 'PAUSED' }),
    report('message_template_quality_update', 4, { ...OFFER, new_quality_score: { a: 1 } }),
    report('message_template_status_update', 4, [] as object),
    fixtureBodyTo({ wabaId, number: '1' }, 'fld_template_category_update_impending'),
  );
  expect((await known()).filter((one) => one.startsWith('offer'))).toEqual([
    'offer en_US APPROVED UTILITY  ',
  ]);
  expect((await known()).filter((one) => one.includes('MARKETING'))).toEqual([]);
  expect(await query(database, `select 1 from inbox where state <> 'done'`)).toEqual([]);
});

const listed = (name: string, more: object = {}) => ({
  id: `99${name}`,
  name,
  language: 'en_US',
  status: 'APPROVED',
  category: 'UTILITY',
  quality_score: { score: 'GREEN' },
  rejected_reason: 'NONE',
  components: [{ type: 'BODY', text: 'Hello' }],
  ...more,
});

async function lookUp(database: Database, wabaId: string, pages: (TemplatePage | Error)[]) {
  const sealed = testSecretBox.seal('token', ACCESS_TOKEN.place(wabaId));
  await execute(database, 'update wabas set access_token_sealed = :sealed where waba_id = :wabaId', {
    sealed,
    wabaId,
  });
  const asked: unknown[] = [];
  const graph = {
    listPhoneNumbers: async () => [],
    listMessageTemplates: async (_waba: string, { after }: { after: string | null }) => {
      asked.push(after);
      const page = pages[asked.length - 1];
      if (page === undefined || page instanceof Error) throw page ?? new Error('asked too often');
      return page;
    },
    readPricing: async () => ({ currency: null, points: [] }),
  };
  await lookUpNumbers(
    { database, graph, secretBox: testSecretBox, logger: silentLogger },
    { wabaId, tries: 0 },
  );
  return asked;
}

test('a walk once a day copies what upstream lists, removes what it does not, and yields to newer reports', async () => {
  const { database, wabaId, report, known } = await world();
  await takeIn(
    database,
    report('message_template_status_update', 1, { ...OFFER, event: 'APPROVED' }),
    report('message_template_status_update', 1, {
      message_template_id: '99b',
      message_template_name: 'b',
      message_template_language: 'en_US',
      event: 'PAUSED',
    }),
  );
  const pages = [
    { templates: [listed('a'), {}], after: 'p2' },
    { templates: [listed('b', { status: 'REJECTED', rejected_reason: 'INVALID_FORMAT' })], after: null },
  ];
  expect(await lookUp(database, wabaId, pages)).toEqual([null, 'p2']);
  const expected = ['a en_US APPROVED UTILITY GREEN ', 'b en_US REJECTED UTILITY GREEN INVALID_FORMAT'];
  expect(await known()).toEqual(expected);
  expect(await lookUp(database, wabaId, [])).toEqual([]);
  await takeIn(
    database,
    report('message_template_status_update', 2, {
      message_template_id: '99a',
      message_template_name: 'a',
      event: 'DISABLED',
    }),
  );
  expect((await known())[0]).toBe('a en_US APPROVED UTILITY GREEN ');
});

test('a walk that gets no answer removes nothing, lets the numbers through and is tried at the next look', async () => {
  const { database, wabaId, report, known } = await world();
  await takeIn(database, report('message_template_status_update', 1, { ...OFFER, event: 'APPROVED' }));
  const first = { templates: [listed('a')], after: 'p2' };
  expect(await lookUp(database, wabaId, [first, noAnswer('gone')])).toEqual([null, 'p2']);
  expect(await known()).toHaveLength(2);
  expect(await lookUp(database, wabaId, [{ templates: [listed('a')], after: null }])).toEqual([null]);
  expect(await known()).toHaveLength(1);
});

test('a template that is deleted is forgotten after 28 days, also where no walk comes by', async () => {
  const { database, report, known } = await world();
  const of = (name: string, days: number, event: string) =>
    report('message_template_status_update', -days * 86_400, {
      message_template_id: `88${name}`,
      message_template_name: name,
      message_template_language: 'en_US',
      event,
    });
  await takeIn(database, of('gone', 29, 'DELETED'), of('late', 27, 'DELETED'), of('kept', 400, 'APPROVED'));
  const retentionDays = { inbox: 0, events: 0, attempts: 0 };
  const objectStore = { remove: async () => 0 };
  const steps = retentionSteps({ database, objectStore, logger: silentLogger, retentionDays });
  const step = steps.find(({ name }) => name === 'deleted templates');
  await step?.run(new AbortController().signal);
  expect(await known()).toEqual(['kept en_US APPROVED   ', 'late en_US DELETED   ']);
});
