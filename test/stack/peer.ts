// Runs in a container of its own, on Node.js alone: what the service meets outside. Over https the Graph API with two
// numbers, files of any id and messages to send, and a tenant's server; over http, for the test, what both received.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';

/** A webhook as it came. */
export type Arrival = { headers: Record<string, string>; body: string };

const arrivals: Arrival[] = [];
/** Bodies of messages that a tenant sent. */
const sends: string[] = [];
const NUMBER = {
  id: '800000000000111',
  display_phone_number: '+1 202-555-0100',
  verified_name: 'Fixture Store',
  quality_rating: 'GREEN',
};
const fileOf = (mediaId: string) => Buffer.from(`fixture-media:${mediaId}\n`);

function answerJson(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function answerGraph(path: string, body: string, response: ServerResponse): void {
  const [, first = '', id = '', edge] = path.split('/');
  if (edge === 'messages') {
    sends.push(body);
    const contacts = [{ input: '12025550143', wa_id: '12025550143' }];
    const messages = [{ id: `wamid.stack-send-${sends.length}` }];
    answerJson(response, { messaging_product: 'whatsapp', contacts, messages });
  } else if (first === 'files') {
    response.writeHead(200, { 'content-type': 'image/jpeg' }).end(fileOf(id));
  } else if (edge === 'phone_numbers') {
    answerJson(response, { data: [NUMBER] });
  } else if (edge === undefined && /^6\d+$/.test(id)) {
    const sha256 = createHash('sha256').update(fileOf(id)).digest('hex');
    const url = `https://files.test/files/${id}`;
    answerJson(response, { id, url, mime_type: 'image/jpeg', sha256, file_size: fileOf(id).length });
  } else {
    answerJson(response, { error: { code: 100, message: 'Unsupported request' } }, 400);
  }
}

async function answerOutside(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks).toString();
  if (['graph.test', 'files.test'].includes(request.headers.host ?? '')) {
    answerGraph(new URL(request.url ?? '/', 'https://graph.test').pathname, body, response);
    return;
  }
  const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)]);
  arrivals.push({ headers: Object.fromEntries(headers), body });
  response.writeHead(200).end();
}

const tls = {
  cert: readFileSync(process.env.TLS_CERT ?? ''),
  key: readFileSync(process.env.TLS_KEY ?? ''),
};
createTlsServer(tls, (request, response) => void answerOutside(request, response)).listen(443);
createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://peer');
  const from = Number(searchParams.get('from') ?? '0');
  answerJson(response, pathname === '/sends' ? sends : arrivals.slice(from));
}).listen(8099);
