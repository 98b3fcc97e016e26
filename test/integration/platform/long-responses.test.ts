import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { makeHttpSender } from '../../../src/deliveries/sender/http-sender.ts';
import {
  openAccountClient,
  openGraphClient,
  openSendClient,
} from '../../../src/platform/graph/graph-client.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import { cpuMsOf, LONG_TEXTS, PUMPS } from '../../support/long-texts.ts';

/** By the square of the length it would be several seconds. */
const MAX_CPU_MS = 1_000;

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The pumps of those texts with which the work takes too long. */
async function slowWith(work: (text: string) => Promise<unknown>): Promise<unknown[]> {
  await work('a');
  const slow: unknown[] = [];
  for (const [index, text] of LONG_TEXTS.entries()) {
    const cpuMs = await cpuMsOf(() => work(text));
    if (cpuMs > MAX_CPU_MS) slow.push([PUMPS[index], cpuMs]);
  }
  return slow;
}

/** Every member that any call to Graph reads, as an error and as a result. */
function graphBodies(text: string): object[] {
  const error = { message: text, type: text, code: text, error_subcode: text, fbtrace_id: text };
  const said = { ...error, error_user_title: text, error_user_msg: text, error_data: { details: text } };
  const one = { id: text, name: text, url: text, mime_type: text, sha256: text, file_size: text };
  const number = { ...one, display_phone_number: text, verified_name: text, quality_rating: text };
  const template = {
    ...number,
    status: text,
    category: text,
    language: text,
    components: [{ type: text, text }],
  };
  const product = { ...template, retailer_id: text, price: text, currency: text, image_url: text };
  const paging = { cursors: { after: text, before: text }, next: `https://graph.facebook.com/${text}` };
  const sent = { messages: [{ id: text, message_status: text }], contacts: [{ input: text, wa_id: text }] };
  const payment = { payments: [{ reference_id: text, status: text, transactions: [{ id: text }] }] };
  return [
    { error: said },
    { ...one, ...sent, ...payment, data: [product], paging, success: true, [text]: text },
  ];
}

test('what Graph returns costs no time by the square of its length, in errors and in results', async () => {
  let body = '{}';
  let status = 200;
  const graphUrl = await serve((_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });
  const upstream = {
    ...{ graphUrl, graphVersion: 'v26.0', mediaHosts: ['127.0.0.1'], appSecrets: [], verifyToken: '' },
  };
  const graph = openGraphClient({ upstream, mode: 'development' });
  const account = openAccountClient({ upstream });
  const sender = openSendClient({ upstream, sending: { timeoutMs: 5_000 } as never });
  onTestFinished(async () => {
    await Promise.all([graph.close(), account.close(), sender.close()]);
  });
  const ofNumber = { phoneNumberId: '1', token: 't' };
  const calls = [
    () => graph.lookUpMedia('1', 't'),
    () => graph.download(`${graphUrl}/file`, 't'),
    () => graph.listPhoneNumbers('1', 't'),
    () => graph.findProducts('1', ['1'], 't'),
    () => sender.sendMessage('1', '{}', 't'),
    () => account.sendReadReceipt({ ...ofNumber, upstreamId: 'wamid.1', typingIndicator: false }),
    () => account.listMessageTemplates('1', { filter: {}, limit: 10, after: null, token: 't' }),
    () => account.lookUpPayment({ ...ofNumber, configuration: 'c', referenceId: 'r' }),
    () => account.listSubscribedApps('1', 't'),
  ];
  const slow = await slowWith(async (text) => {
    for (const [index, answer] of graphBodies(text).entries()) {
      body = JSON.stringify(answer);
      status = index === 0 ? 400 : 200;
      // A result that is refused is as good as one that is taken.
      for (const call of calls) await call().catch(() => undefined);
    }
  });
  expect(slow).toEqual([]);
}, 120_000);

test("what a tenant's server returns costs no time by the square of its length", async () => {
  let text = '';
  const url = await serve((_request, response) => {
    // Node.js itself refuses longer headers.
    const header = text.replace(/[^\x20-\x7e]/g, '=').slice(0, 4_000);
    response.writeHead(503, { 'retry-after': header, 'content-type': header, 'x-long': header }).end(text);
  });
  const limits = { connectTimeoutMs: 2_000, totalTimeoutMs: 5_000 };
  const guard = makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] });
  const sender = makeHttpSender({ guard, allowHttp: true, ...limits });
  onTestFinished(() => sender.close());
  const slow = await slowWith(async (long) => {
    text = long;
    const result = await sender.send({ url, headers: {}, body: Buffer.from('{}'), timeoutMs: 5_000 });
    expect(result).toMatchObject({ outcome: 'response', statusCode: 503 });
  });
  expect(slow).toEqual([]);
});
