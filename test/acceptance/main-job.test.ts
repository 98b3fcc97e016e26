import { statSync } from 'node:fs';
import { describe, expect, inject, test } from 'vitest';
import { eventually } from '../support/webhook-receiver.ts';
import { webhook } from './support/received.ts';
import { admin, description, descriptionPath, fetchSecurely } from './support/stack.ts';
import { fixture, postUpstream, statusBody, textBody } from './support/upstream.ts';

const unique = () => `wamid.acceptance-${Math.random().toString(36).slice(2)}`;

async function api(path: string, tenant = 0) {
  const { apiUrl, tenants } = description();
  const response = await fetch(`${apiUrl}${path}`, {
    headers: { authorization: `Bearer ${tenants[tenant]?.apiKey}` },
  });
  return { status: response.status, body: (await response.json()) as Record<string, never> };
}

describe('what start leaves for scripts', () => {
  test('embedded.json is private and names everything', () => {
    expect(statSync(descriptionPath()).mode & 0o777).toBe(0o600);
    const stack = description();
    expect(stack.httpsUrl).toMatch(/^https:/);
    // Links open in a browser and in programs without a certificate to trust.
    expect(stack.publicUrl).toBe(stack.apiUrl);
    expect(stack.tenants.map((tenant) => [tenant.wabaId, tenant.phoneNumberIds])).toEqual([
      ['900000000000101', ['800000000000111', '800000000000112']],
      ['900000000000202', ['800000000000221']],
    ]);
    for (const part of ['postgres', 'temporal', 'minio', 'api', 'worker', 'sandbox', 'receiver']) {
      expect(stack.pids[part], part).toBeGreaterThan(1);
    }
    process.stdout.write(`start to ready: ${inject('stack').startSeconds.toFixed(1)} s\n`);
  });
});

describe('the main job', () => {
  test('a signed upstream message reaches the tenant, signed, in the form of the spec', async () => {
    const id = unique();
    expect(await postUpstream(textBody(id, 'héllo 👋'))).toBe(200);
    const { body, verified, headers } = await webhook('message', (one) => one.body.includes(id));
    expect(verified).toBe(true);
    expect(headers['x-service-event-type']).toBe('message');
    const event = JSON.parse(body);
    expect(Object.keys(event)).toEqual([
      'eventType',
      'userId',
      'wabaId',
      'phoneNumberId',
      'eventId',
      'occurredAt',
      'data',
    ]);
    expect(event).toMatchObject({
      eventType: 'message',
      eventId: id,
      userId: description().tenants[0]?.userId,
    });
    expect(event.occurredAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(event.data.message.text.body).toBe('héllo 👋');
  });

  test('numbers beyond 2^53 and odd spellings arrive as upstream wrote them', async () => {
    const id = unique();
    const odd = textBody(id, 'x').replace(
      '"type":"text"',
      '"type":"text","big":12345678901234567890,"odd":[1.0,1e3,-0,"\\u00e9\\/"],"2":1,"1":2',
    );
    expect(await postUpstream(odd)).toBe(200);
    const { body } = await webhook('odd message', (one) => one.body.includes(id));
    expect(body).toContain('"big":12345678901234567890,"odd":[1.0,1e3,-0,"\\u00e9\\/"],"2":1,"1":2');
  });

  test('inbound media is announced after its message, served over http and https with the same bytes, and found by API', async () => {
    const { sandboxUrl, publicUrl, httpsUrl } = description();
    const bytes = Buffer.from(`picture ${unique()}`);
    const stored = await fetch(`${sandboxUrl}/sandbox/media?filename=a.jpg`, {
      method: 'POST',
      headers: { 'content-type': 'image/jpeg' },
      body: bytes,
    });
    const media = (await stored.json()) as { id: string; sha256: string };
    const id = unique();
    const image = { id: media.id, mime_type: 'image/jpeg', sha256: media.sha256, caption: 'Door' };
    const body = textBody(id, 'x').replace(
      '"type":"text","text":{"body":"x"}',
      `"type":"image","image":${JSON.stringify(image)}`,
    );
    expect(await postUpstream(body)).toBe(200);
    const message = await webhook('message', (one) => JSON.parse(one.body).eventId === id);
    const ready = await webhook('media.ready', (one) => JSON.parse(one.body).eventId === `${id}_media`);
    const gapMs = Date.parse(ready.receivedAt) - Date.parse(message.receivedAt);
    process.stdout.write(`message to media.ready: ${gapMs} ms\n`);
    expect(gapMs).toBeGreaterThanOrEqual(0);
    const { data } = JSON.parse(ready.body);
    expect(data).toEqual({
      metaMessageId: id,
      serviceMessageId: expect.stringMatching(/^\d+$/),
      mediaType: 'image',
      mimeType: 'image/jpeg',
      mediaPath: expect.stringMatching(/^\/received_media\/[A-Za-z0-9_-]{22,}/),
      mediaUrl: `${publicUrl}${data.mediaPath}`,
      caption: 'Door',
    });
    for (const download of [await fetch(data.mediaUrl), await fetchSecurely(`${httpsUrl}${data.mediaPath}`)])
      expect(Buffer.from(await download.arrayBuffer())).toEqual(bytes);
    const found = await api(`/api/external/messages/${data.serviceMessageId}/media`);
    expect(found.body).toMatchObject({ mediaPending: false, mediaUrl: data.mediaUrl, metaMessageId: id });
    const foreign = await api(`/api/external/messages/${data.serviceMessageId}/media`, 1);
    expect(foreign.status).toBe(404);
  });

  test('media whose address in the webhook fails is fetched from a fresh one; media that is gone ends pending', async () => {
    expect(await postUpstream(fixture('in_image_caption_url.json'))).toBe(200);
    await webhook(
      'media.ready after a look-up',
      (one) =>
        one.body.includes('"caption":"Front door"') && one.headers['x-service-event-type'] === 'media.ready',
    );
    const { sandboxUrl } = description();
    const gone = JSON.parse(fixture('in_video.json').toString());
    const id = unique();
    const message = gone.entry[0].changes[0].value.messages[0];
    message.id = id;
    const mediaId = '600000000099999';
    message.video = { ...message.video, id: mediaId, url: undefined };
    await fetch(`${sandboxUrl}/sandbox/faults`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ match: 'media_lookup', id: mediaId, kind: 'gone' }),
    });
    expect(await postUpstream(JSON.stringify(gone))).toBe(200);
    await webhook('message of gone media', (one) => JSON.parse(one.body).eventId === id);
    const conversations = await api('/api/external/conversations');
    const [conversation] = conversations.body.data as unknown as { id: string }[];
    type State = { metaMessageId: string; mediaPending: boolean };
    let state: State | undefined;
    await eventually('media that is gone is given up', async () => {
      const list = await api(`/api/external/conversations/${conversation?.id}/messages`);
      const messages = list.body.data as unknown as State[];
      state = messages.find((one) => one.metaMessageId === id);
      return state?.mediaPending === false;
    });
    expect(state).toMatchObject({ mediaPending: false, mediaUrl: null, mediaError: { code: 'media_gone' } });
  });

  test('a cart becomes message and order; the order carries names, exact totals and https images', async () => {
    expect(await postUpstream(fixture('in_order_inr_decimals_empty_text.json'))).toBe(200);
    const order = await webhook(
      'order',
      (one) => JSON.parse(one.body).data.order?.catalog_id === '700000000000002',
    );
    const { eventId, data } = JSON.parse(order.body);
    expect(eventId).toBe('700000000000002');
    expect(data.order.product_items[0].item_price).toBe(149.5);
    expect(data.service).toMatchObject({
      order_number: `ORD-${data.service.order_id}`,
      items_count: 1,
      total_amount: 448.5,
      currency: 'INR',
    });
    expect(data.service.thumbnail_url).toMatch(/^https:/);
    expect(data.service.items[0].product_name).not.toBe('');
  });

  test('statuses of one message arrive in the order in which upstream sent them', async () => {
    const id = unique();
    for (const status of ['sent', 'delivered', 'read'])
      expect(await postUpstream(statusBody(id, status))).toBe(200);
    await webhook('read', (one) => one.body.includes(id) && one.body.includes('"status":"read"'));
    const { received } = await import('./support/received.ts');
    const mine = (await received()).filter((one) => JSON.parse(one.body).eventId === id);
    expect(mine.map((one) => JSON.parse(one.body).data.status.status)).toEqual(['sent', 'delivered', 'read']);
    expect(mine.map((one) => one.headers['x-service-sequence'])).toEqual(['1', '2', '3']);
  });
});

describe('the ingress', () => {
  test('refuses what is not signed by the app, and keeps what it does not know', async () => {
    expect(await postUpstream(textBody(unique(), 'x'), 'another secret')).toBe(401);
    expect(await postUpstream('not json at all')).toBe(200);
    expect(await postUpstream(fixture('odd_unknown_phone_number.json'))).toBe(200);
    const { ingressUrl, upstream } = description();
    const query = `hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=${upstream.verifyToken}`;
    const handshake = await fetch(`${ingressUrl}/upstream/webhook?${query}`);
    expect(await handshake.text()).toBe('1158201444');
  });
});

describe('admin commands in their fixed forms', () => {
  test('a key works until it is revoked; an endpoint gets its test event; an event is found by its eventId', async () => {
    const wabaId = '900000000000202';
    const { receiverUrl, apiUrl } = description();
    const key = await admin('key', 'create', '--waba', wabaId, '--scopes', 'read,send,manage_webhooks');
    const me = async () =>
      (await fetch(`${apiUrl}/me`, { headers: { authorization: `Bearer ${key.apiKey}` } })).status;
    expect(await me()).toBe(200);
    await admin('key', 'revoke', String(key.id));
    expect(await me()).toBe(401);
    const endpoint = await admin(
      'endpoint',
      'add',
      '--waba',
      wabaId,
      '--url',
      `${receiverUrl}/webhook/extra`,
    );
    expect(endpoint.secret).toMatch(/^whsec_/);
    await fetch(`${receiverUrl}/control/secrets`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ secrets: [endpoint.secret] }),
    });
    const outcome = await admin('endpoint', 'test', String(endpoint.id));
    expect(outcome.state).toBe('delivered');
    const event = await webhook('test event', (one) => one.name === 'extra');
    expect(JSON.parse(event.body)).toMatchObject({
      eventType: 'test',
      phoneNumberId: 'TEST_PHONE_NUMBER_ID',
      eventId: expect.stringMatching(/^test_\d+$/),
      data: { message: expect.any(String), businessName: 'Fixture Bazaar' },
    });
    const found = await admin('find', String(outcome.eventId));
    expect(JSON.stringify(found)).toContain('delivered');
  });
});
