import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import type { MediaResult } from '../../../../src/features/messages/media/fetch-and-store.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { type MediaStack, messageBody, startMediaStack } from './media-stack.ts';

export const JPEG = Buffer.concat([Buffer.from('ffd8ffe000104a464946', 'hex'), randomBytes(2_000)]);

export let stack: MediaStack;

export type MediaRow = {
  id: string;
  state: string;
  object_key: string | null;
  served_type: string | null;
  size_bytes: string | null;
  sha256: string | null;
  error_code: string | null;
  error_message: string | null;
};

export async function mediaOf(upstreamId: string): Promise<MediaRow> {
  const [row] = await query<MediaRow>(
    stack.database,
    'select m.id, d.* from messages m join media d on d.message_id = m.id where m.upstream_id = :upstreamId',
    { upstreamId },
  );
  if (row === undefined) throw new Error(`no media of ${upstreamId}`);
  return row;
}

export async function eventsOf(upstreamId: string) {
  return await query<{ type: string; eventId: string; lane: string; body: string }>(
    stack.database,
    `select event_type as type, event_id as "eventId", lane, convert_from(body, 'UTF8') as body
       from events where event_id in (:upstreamId, :upstreamId2) order by sequence`,
    { upstreamId, upstreamId2: `${upstreamId}_media` },
  );
}

export async function openTasks(): Promise<number> {
  const open = "select 1 from workflow_tasks where workflow_type = 'storeInboundMedia' and waba_id = :wabaId";
  return (await query(stack.database, open, { wabaId: stack.wabaId })).length;
}

/** Takes in a message with this media and returns its upstream id. */
export async function receive(
  media: Record<string, unknown>,
  wrap: (content: object) => Record<string, unknown> = (image) => ({ type: 'image', image }),
): Promise<string> {
  const { body, upstreamId } = messageBody(wrap({ mime_type: 'image/jpeg', ...media }), stack);
  await takeIn(stack.database, body);
  return upstreamId;
}

export async function finished(upstreamId: string, timeoutMs = 20_000): Promise<MediaRow> {
  await eventually(
    'media is stored or failed',
    async () => (await mediaOf(upstreamId)).state !== 'pending',
    timeoutMs,
  );
  return await mediaOf(upstreamId);
}

/** Media that upstream has and that is stored. */
export async function stored(): Promise<void> {
  const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
  expect(await finished(await receive({ id, sha256 }))).toMatchObject({ state: 'stored' });
}

export async function resultOf(messageId: string): Promise<MediaResult> {
  return (await stack.client.workflow.getHandle(`media/${messageId}`).result()) as MediaResult;
}

export async function expectFailed(upstreamId: string, code: string): Promise<MediaRow> {
  const row = await finished(upstreamId);
  expect(row).toMatchObject({ state: 'failed', error_code: code, object_key: null });
  expect(row.error_message).toMatch(/\w+ \w+/);
  expect(await resultOf(row.id)).toMatchObject({ outcome: 'failed', code });
  expect((await eventsOf(upstreamId)).map(({ type }) => type)).toEqual(['message']);
  expect(await openTasks()).toBe(0);
  return row;
}

export const downloads = (requests: string[]) =>
  requests.filter((request) => request.includes('/media-download/'));

export const lookups = (requests: string[]) => requests.filter((request) => request.includes('/v26.0/'));

/** One stack for the tests of a file. Each begins as a tenant that no other knows, at an upstream that has nothing. */
export function useMediaStack(): void {
  beforeAll(async () => {
    stack = await startMediaStack();
  });
  afterAll(() => stack?.stop());
  beforeEach(async () => {
    await stack.clearUpstream();
    Object.assign(stack, await stack.newTenant());
  });
}
