import type { Client } from 'minio';
import { expect, test } from 'vitest';
import { cancelDelivery } from '../../../src/features/delivery-log/shown-delivery.ts';
import { verifyReport } from '../../../src/ops/erasures/erasure-report.ts';
import { eraseCustomer, erasureOf } from '../../../src/ops/erasures/erasures.ts';
import { verifyAudit } from '../../../src/platform/audit/audit-chain.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { publicDeliveryId } from '../../../src/platform/public-ids.ts';
import { formsOfNumber, objectsHolding, storeClient, tablesHolding } from '../../support/database-scan.ts';
import { takeIn } from '../../support/take-in.ts';
import {
  auditExport,
  bodyOf,
  contactOf,
  messageOf,
  person,
  startErasureWorld,
  storeFile,
  WABA,
} from './erasure-world.ts';

const ASHA = person('Asha', '12025550143');
const BO = person('Bo', '4915550009182');

async function dropEverything(database: Database): Promise<void> {
  const rows = await query<{ id: string }>(database, `select id from deliveries where state = 'pending'`);
  const actor = { name: 'kim@store.example', requestId: null, ip: null };
  for (const { id } of rows) await cancelDelivery({ database, actor }, WABA, publicDeliveryId(id));
}

test('the forms of a number are found wherever they stand in an id', () => {
  for (const before of ['', 'a', 'ab', 'abc']) {
    const encoded = Buffer.from(`${before}${ASHA.waId}after`).toString('base64');
    expect(formsOfNumber(ASHA.waId).some((form) => encoded.includes(form))).toBe(true);
  }
});

test('no table and no line of the audit log holds a number after its erasure, also of deliveries that were dropped', async () => {
  const world = await startErasureWorld();
  const { database, tools } = world;
  await takeIn(
    database,
    bodyOf([
      { contacts: [contactOf(ASHA), contactOf(BO)], messages: [messageOf(ASHA, 1), messageOf(BO, 1)] },
    ]),
  );
  await dropEverything(database);
  const [first] = await query(database, `select 1 from audit_log where action = 'delivery.dropped'`);
  expect(first).toBeDefined();
  const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
  await world.erase(erasureId);
  const forms = formsOfNumber(ASHA.waId);
  expect(await tablesHolding(database, forms)).toEqual([]);
  const exported = await auditExport(database);
  expect(forms.filter((form) => exported.includes(form))).toEqual([]);
  expect((await verifyAudit(database, null)).findings).toEqual([]);
});

/** Asha's photo, in a bucket that another program made. */
async function withPhoto(makeBucket: (client: Client, bucket: string) => Promise<void>) {
  const world = await startErasureWorld();
  const { database, config } = world;
  await makeBucket(storeClient(config), config.objectStore.bucket);
  const image = { type: 'image', image: { id: '77', mime_type: 'image/jpeg' } };
  await takeIn(database, bodyOf([{ contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 1, image)] }]));
  const key = await storeFile(world, ASHA.wamid(1), Buffer.from(`photo of ${ASHA.name}`));
  return { ...world, key };
}

test('where the object store keeps versions, none of a file is left', async () => {
  const world = await withPhoto(async (client, bucket) => {
    await client.makeBucket(bucket);
    await client.setBucketVersioning(bucket, { Status: 'Enabled' });
  });
  const { config, tools, objectStore, key } = world;
  // Another file, whose name begins with this one's, stays.
  await objectStore.put(`${key}2`, [Buffer.from('another')] as never, { contentType: 'text/plain' });
  const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
  await world.erase(erasureId);
  expect(await objectsHolding(config, [ASHA.name])).toEqual({ all: [`${key}2`], holding: [] });
  const { report } = (await erasureOf(tools, null, erasureId)).report ?? {};
  expect(report).toMatchObject({ counts: { files: 1 }, refused: {} });
});

test('a version that the object store does not let go is in the signed report', async () => {
  const world = await withPhoto(async (client, bucket) => {
    await client.makeBucket(bucket, '', { ObjectLocking: true });
    await client.setObjectLockConfig(bucket, { mode: 'GOVERNANCE', unit: 'Days', validity: 1 });
  });
  const { config, tools, key } = world;
  const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
  await world.erase(erasureId);
  expect((await objectsHolding(config, [ASHA.name])).holding).toEqual([key]);
  const { refused, report } = await erasureOf(tools, null, erasureId);
  expect([refused, report?.report.refused]).toEqual([{ fileVersions: 1 }, { fileVersions: 1 }]);
  expect(verifyReport(report, tools.encryptionKeys)).toBe('valid');
});

test('an entry that an earlier version wrote with the id of an event loses it; the chain says so and still holds', async () => {
  const world = await startErasureWorld();
  const { database, tools } = world;
  await takeIn(database, bodyOf([{ contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 1)] }]));
  await query(
    database,
    `insert into audit_log (tenant_id, waba_id, actor, action, target, detail)
     select tenant_id, waba_id, 'kim@store.example', 'delivery.dropped', 'delivery dlv_1',
            jsonb_build_object('eventId', cast(:asha as text), 'endpointId', '7') from wabas where waba_id = :waba`,
    { asha: ASHA.wamid(1), waba: WABA },
  );
  const { position, hash } = (await verifyAudit(database, null)).last;
  const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
  await world.erase(erasureId);
  expect(await tablesHolding(database, formsOfNumber(ASHA.waId))).toEqual([]);
  const kept = await query(
    database,
    `select actor, target, detail from audit_log where action = 'delivery.dropped'`,
  );
  expect(kept).toEqual([
    { actor: 'kim@store.example', target: 'delivery dlv_1', detail: { endpointId: '7', erased: 'eventId' } },
  ]);
  expect(await verifyAudit(database, `${position}:${hash}`)).toMatchObject({ findings: [], redacted: 1 });
  expect((await erasureOf(tools, null, erasureId)).counts).toMatchObject({ auditEntries: 1 });
});
