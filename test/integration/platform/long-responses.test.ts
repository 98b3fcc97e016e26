import { createServer, type RequestListener } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import {
  openAccountClient,
  openGraphClient,
  openSendClient,
} from '../../../src/platform/graph/graph-client.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import { makeHttpSender } from '../../../src/platform/sender/http-sender.ts';
import { listenInTest } from '../../support/listen.ts';
import { cpuMsOf, LONG_TEXTS, PUMPS } from '../../support/long-texts.ts';

/** By the square of the length it would be several seconds. */
const MAX_CPU_MS = 1_000;

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  const port = await listenInTest(server);
  return `http://127.0.0.1:${port}`;
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

/** Every member that any call to Graph reads, in an error and in a result. */
function graphBodies(text: string): { error: object; result: object } {
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
  const result = { ...one, ...sent, ...payment, data: [product], paging, success: true, unknown: text };
  return { error: { error: said }, result };
}

const PLACE = '@@ here @@';

/** A body once for each text in it, with that one in its place and short ones elsewhere. */
function templatesOf(body: object): string[] {
  const json = JSON.stringify(body);
  return json.split(PLACE).flatMap((_, at, parts) => {
    if (at === 0) return [];
    return [`${parts.slice(0, at).join('1')}${PLACE}${parts.slice(at).join('1')}`];
  });
}

test('what Graph returns costs no time by the square of its length, in errors and in results', async () => {
  let body = '{}';
  let status = 200;
  const graphUrl = await serve((_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });
  const upstream = {
    graphUrl,
    graphVersion: 'v26.0',
    mediaHosts: ['127.0.0.1'],
    appSecrets: [],
    signup: null,
    verifyToken: '',
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
    async () => {
      const { body: file } = await graph.download(`${graphUrl}/file`, 't');
      for await (const _ of file);
    },
    () => graph.listPhoneNumbers('1', 't'),
    () => graph.findProducts('1', ['1'], 't'),
    () => sender.sendMessage('1', '{}', 't'),
    () => account.sendReadReceipt({ ...ofNumber, upstreamId: 'wamid.1', typingIndicator: false }),
    () => account.listMessageTemplates('1', { filter: {}, limit: 10, after: null, token: 't' }),
    () => account.lookUpPayment({ ...ofNumber, configuration: 'c', referenceId: 'r' }),
    () => account.listSubscribedApps('1', 't'),
  ];
  const { error, result } = graphBodies(PLACE);
  const answers = [
    ...templatesOf(error).map((template) => ({ template, status: 400 })),
    ...templatesOf(result).map((template) => ({ template, status: 200 })),
  ];
  expect(answers.length).toBeGreaterThan(40);
  const failed: unknown[] = [];
  for (const [index, text] of LONG_TEXTS.entries()) {
    for (const answer of answers) {
      body = answer.template.replace(PLACE, () => JSON.stringify(text).slice(1, -1));
      ({ status } = answer);
      for (const call of calls) {
        let refusal = '';
        const cpuMs = await cpuMsOf(async () => {
          // A result that is refused is as good as one that is taken, unless nobody has read it.
          await call().catch((thrown: unknown) => {
            refusal = String(thrown);
          });
        });
        if (cpuMs > MAX_CPU_MS || refusal.includes('longer than'))
          failed.push([PUMPS[index], answer.template, cpuMs, refusal]);
      }
    }
  }
  expect(failed).toEqual([]);
  body = JSON.stringify({ id: 'x'.repeat(1024 * 1024) });
  await expect(graph.lookUpMedia('1', 't')).rejects.toThrow('longer than');
});

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
