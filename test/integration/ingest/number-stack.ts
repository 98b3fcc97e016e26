import type { Client } from '@temporalio/client';
import { makeNumberActivities } from '../../../src/activities/refresh-numbers.ts';
import { ACCESS_TOKEN } from '../../../src/features/accounts/access-tokens.ts';
import { saveWaba } from '../../../src/features/accounts/accounts.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import type { UpstreamPhoneNumber } from '../../../src/platform/graph/graph-calls.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { startTaskWorkers } from '../../support/task-workers.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { createTestDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';

export type NumberStack = {
  database: Database;
  client: Client;
  taskQueue: string;
  /** Upstream's list of a WABA, or what it does when it is asked for that. */
  answer(wabaId: string, list: () => Promise<UpstreamPhoneNumber[]>): void;
  /** How often upstream was asked for that of a WABA. */
  asked(wabaId: string): number;
  stop(): Promise<void>;
};

export const listed = (phoneNumberId: string, verifiedName = 'Fixture Store'): UpstreamPhoneNumber => ({
  phoneNumberId,
  displayPhoneNumber: '+1 202-555-0100',
  verifiedName,
  throughput: null,
  isInApp: false,
  qualityRating: 'GREEN',
});

/** The look-up of numbers on real servers, with a list in place of upstream. */
export async function startNumberStack(): Promise<NumberStack> {
  const store = await createTestDatabase(20);
  const config = loadConfig(testSettings(store.url));
  const lists = new Map<string, () => Promise<UpstreamPhoneNumber[]>>();
  const asked = new Map<string, number>();
  const graph = {
    listPhoneNumbers: async (wabaId: string) => {
      asked.set(wabaId, (asked.get(wabaId) ?? 0) + 1);
      return (await lists.get(wabaId)?.()) ?? [];
    },
    listMessageTemplates: async () => ({ templates: [], after: null }),
    readPricing: async () => ({ currency: null, points: [] }),
  };
  const { database } = store;
  const activities = makeNumberActivities({
    database,
    graph,
    secretBox: testSecretBox,
    logger: silentLogger,
  });
  const { client, taskQueue, stop } = await startTaskWorkers(config, database, { orders: activities });
  return {
    database,
    client,
    taskQueue,
    answer: (wabaId, list) => void lists.set(wabaId, list),
    asked: (wabaId) => asked.get(wabaId) ?? 0,
    stop: async () => {
      await stop();
      await store.close();
    },
  };
}

/** Gives a WABA an access token, or takes it away. */
export async function setToken(database: Database, wabaId: string, token: string | null): Promise<void> {
  const [waba] = await query<{ tenantId: string }>(
    database,
    'update wabas set access_token_sealed = null where waba_id = :wabaId returning tenant_id as "tenantId"',
    { wabaId },
  );
  if (token === null) return;
  const accessTokenSealed = testSecretBox.seal(token, ACCESS_TOKEN.place(wabaId));
  await saveWaba(database, waba?.tenantId ?? '', { wabaId, accessTokenSealed });
}

/** A body with texts from a customer, each to its number of a WABA. */
export function textsBody(wabaId: string, ...texts: { id: string; phoneNumberId: string }[]): Buffer {
  const entry = texts.map(({ id, phoneNumberId }) => ({
    id: wabaId,
    changes: [
      {
        field: 'messages',
        value: {
          messaging_product: 'whatsapp',
          metadata: { display_phone_number: '12025550100', phone_number_id: phoneNumberId },
          contacts: [{ profile: { name: 'Asha Tester' }, wa_id: '12025550143' }],
          messages: [{ from: '12025550143', id, timestamp: '1790000077', type: 'text', text: { body: id } }],
        },
      },
    ],
  }));
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
}

/** A body by which upstream tells of a change, as its fields do. */
export function fieldBody(field: string, wabaId: string): Buffer {
  const entry = [{ id: wabaId, time: 1_790_000_000, changes: [{ field, value: { event: 'CHANGED' } }] }];
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
}
