import { randomBytes } from 'node:crypto';
import { crc32, inflateRawSync } from 'node:zlib';
import { expect, onTestFinished } from 'vitest';
import { type ErasedBatch, type EraseTools, eraseNextBatch } from '../../../src/ops/erasures/erase.ts';
import { exportAudit } from '../../../src/platform/audit/audit-chain.ts';
import { type Config, loadConfig } from '../../../src/platform/config/config.ts';
import { makeSecretBox, parseEncryptionKeys } from '../../../src/platform/crypto/secret-box.ts';
import { type ObjectStore, openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';

export const WABA = '900000000000101';
export const NUMBER = '800000000000111';

export type ErasureWorld = {
  config: Config;
  settings: Record<string, string>;
  database: Database;
  objectStore: ObjectStore;
  tools: EraseTools & { actor: { name: string; requestId: null; ip: null } };
  endpointId: string;
  cancelled: string[];
  /** Erases until it is done. */
  erase(erasureId: string): Promise<ErasedBatch>;
};

/** The fixtures' accounts with an endpoint and a bucket of their own; batches are run by the test. */
export async function startErasureWorld(): Promise<ErasureWorld> {
  const { database, url } = await seededDatabase();
  const bucket = `test-${randomBytes(6).toString('hex')}`;
  const settings = testSettings(url, { HELIOGRAPH_OBJECT_STORE_BUCKET: bucket });
  const config = loadConfig(settings);
  const { objectStore } = toolsFor(database, config);
  const cancelled: string[] = [];
  const tools = {
    ...toolsFor(database, config),
    objectStore,
    cancelWorkflows: async (ids: readonly string[]) => {
      cancelled.push(...ids);
    },
    actor: { name: 'operator command', requestId: null, ip: null },
  };
  const { id: endpointId } = await addEndpoint(database, WABA, 'https://tenant.example/hook');
  const erase = (erasureId: string) => eraseAll(tools, erasureId);
  return { config, settings, database, objectStore, tools, endpointId, cancelled, erase };
}

/** What erases in a process without Temporal. */
export function toolsFor(database: Database, config: Config): EraseTools & { objectStore: ObjectStore } {
  const encryptionKeys = parseEncryptionKeys(config.encryptionKeys);
  const objectStore = openObjectStore(config.objectStore);
  onTestFinished(() => objectStore.close());
  return {
    database,
    objectStore,
    encryptionKeys,
    secretBox: makeSecretBox(encryptionKeys),
    cancelWorkflows: async () => {},
  };
}

/** Runs batches until the erasure is done; one that waits for ever fails. */
export async function eraseAll(tools: EraseTools, erasureId: string): Promise<ErasedBatch> {
  for (let batches = 0; batches < 500; batches += 1) {
    const batch = await eraseNextBatch(tools, erasureId);
    if (batch === null) throw new Error('there is no such erasure');
    if (batch.state === 'done') return batch;
    if (batch.waitMs > 0) throw new Error(`it waits: ${batch.reason}`);
  }
  throw new Error('the erasure does not end');
}

/** A person who writes; all that is personal is unlike anything else in the database. */
export type Person = {
  waId: string;
  userId: string;
  name: string;
  text: string;
  wamid: (n: number | string) => string;
};

/** Message ids are made as upstream makes them: the number stands in them in base64. */
export function person(seed: string, waId: string): Person {
  const head = `\x1c\x18${String.fromCharCode(waId.length)}${waId}\x15\x02\x00\x12`;
  return {
    waId,
    userId: `US.77${waId}`,
    name: `Name ${seed} Quill`,
    text: `Text of ${seed}`,
    wamid: (n) => `wamid.${Buffer.from(`${head}${n}`).toString('base64')}`,
  };
}

type Value = Record<string, unknown>;

/** An upstream body of the WABA with one change per value; `field` of each: `messages` unless it says so. */
export function bodyOf(
  values: readonly (Value & { field?: string })[],
  wabaId = WABA,
  phoneNumberId = NUMBER,
): Buffer {
  const changes = values.map(({ field = 'messages', ...value }) => ({
    field,
    value: {
      messaging_product: 'whatsapp',
      metadata: { display_phone_number: '12025550100', phone_number_id: phoneNumberId },
      ...value,
    },
  }));
  return Buffer.from(
    JSON.stringify({ object: 'whatsapp_business_account', entry: [{ id: wabaId, changes }] }),
  );
}

export function contactOf({ name, waId, userId }: Person): object {
  return { profile: { name }, wa_id: waId, user_id: userId };
}

export function messageOf(who: Person, n: number | string, content: object = {}): object {
  const { waId, userId, text } = who;
  const said = { type: 'text', text: { body: text } };
  return { from: waId, from_user_id: userId, id: who.wamid(n), timestamp: '1790000077', ...said, ...content };
}

export function statusOf(who: Person, n: number | string, status: string): object {
  const { waId: recipient_id, userId: recipient_user_id } = who;
  return { id: who.wamid(n), status, timestamp: '1790000078', recipient_id, recipient_user_id };
}

/** Stores the file of a message as the download would have. */
export async function storeFile(world: ErasureWorld, upstreamId: string, bytes: Buffer): Promise<string> {
  const key = randomBytes(24).toString('base64url');
  await world.objectStore.put(key, [bytes] as never, { contentType: 'application/octet-stream' });
  await execute(
    world.database,
    `update media set state = 'stored', object_key = :key, served_type = 'image/jpeg', size_bytes = :length, sha256 = :repeat,
            finished_at = now()
      where message_id = (select id from messages where upstream_id = :upstreamId)`,
    { key, length: bytes.length, repeat: 'a'.repeat(64), upstreamId },
  );
  return key;
}

/** Every delivery was attempted once, and the response was captured; all stay open. */
export async function attemptAll(database: Database): Promise<void> {
  await execute(
    database,
    `insert into attempts (delivery_id, attempt, waba_id, endpoint_id, started_at, duration_ms, reused, status_code,
                           url, user_agent, response_body, worker)
     select d.id, 1, d.waba_id, d.endpoint_id, now(), 1, false, 500, 'https://tenant.example/hook', 'a', ev.body, 'w'
       from deliveries d join events ev on ev.day = d.event_day and ev.id = d.event_uuid`,
  );
  await execute(
    database,
    `update deliveries d set workflow_id = 'delivery/' || endpoint_id || '/' || ev.event_id || '/' || d.id
       from events ev where ev.id = d.event_uuid`,
  );
}

export async function count(database: Database, table: string, where = 'true'): Promise<number> {
  const [row] = await query<{ n: number }>(
    database,
    `select count(*)::integer as n from ${table} where ${where}`,
  );
  return row?.n ?? 0;
}

/** The files of an archive in their order, by its central directory. */
export function unzipped(archive: Buffer): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  const end = archive.lastIndexOf(Buffer.from('504b0506', 'hex'));
  let at = archive.readUInt32LE(end + 16);
  for (let n = archive.readUInt16LE(end + 10); n > 0; n -= 1) {
    const [method, crc] = [archive.readUInt16LE(at + 10), archive.readUInt32LE(at + 16)];
    const [packed, nameBytes] = [archive.readUInt32LE(at + 20), archive.readUInt16LE(at + 28)];
    const head = archive.readUInt32LE(at + 42);
    const from = head + 30 + archive.readUInt16LE(head + 26) + archive.readUInt16LE(head + 28);
    const bytes = archive.subarray(from, from + packed);
    const content = method === 8 ? inflateRawSync(bytes) : bytes;
    expect(crc32(content)).toBe(crc);
    files.set(archive.toString('utf8', at + 46, at + 46 + nameBytes), content);
    at += 46 + nameBytes + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  return files;
}

/** All lines of the audit log as they are exported. */
export async function auditExport(database: Database): Promise<string> {
  let text = '';
  for await (const line of exportAudit(database)) text += line;
  return text;
}
