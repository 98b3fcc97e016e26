import { execFile } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { stdioClient } from '../integration/mcp/mcp-clients.ts';
import { launchChrome } from '../support/browser.ts';
import { packCli, runCli } from './support/built-cli.ts';
import { installClient } from './support/client-project.ts';
import { api } from './support/customer.ts';
import { portalWindow } from './support/portal-window.ts';
import { oldestNode, provideGo } from './support/programs.ts';
import { pythonEnvironment } from './support/python-environment.ts';
import { description, PROJECT } from './support/stack.ts';
import { startTenantServer } from './support/tenant-server.ts';
import { postUpstream, textBody } from './support/upstream.ts';

/** What is collected, sent later, sent to many and counted, by every way that leads to it, against the sandbox. */

const run = promisify(execFile);
const HOUR_MS = 3_600_000;
const PHONE = `1202555${randomInt(1000, 9999)}`;
const REF = `order ${randomBytes(4).toString('hex')}`;

let folder: string;
/** The message that is scheduled, and the broadcast that is done. */
let scheduled: string;
let broadcast: string;
let endpoint: string;
let conversation: string;

const number = () => description().tenants[0]?.phoneNumberIds[0] ?? '';
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const environment = () => ({
  HELIOGRAPH_URL: description().apiUrl,
  HELIOGRAPH_API_KEY: description().tenants[0]?.apiKey ?? '',
  SCHEDULED: scheduled,
  BROADCAST: broadcast,
  CONVERSATION: conversation,
});

type Counted = { state: string; counts: { accepted: number; delivered: number; read: number } };
const reached = ({ counts: { accepted, delivered, read } }: Counted) => accepted + delivered + read;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'heliograph-later-and-many-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  const { HELIOGRAPH_URL, HELIOGRAPH_API_KEY } = environment();
  const headers = { authorization: `Bearer ${HELIOGRAPH_API_KEY}` };
  await fetch(`${HELIOGRAPH_URL}/api/external/webhook-endpoints/${endpoint}`, { method: 'DELETE', headers });
});

test('REST: messages of a customer come together, one is scheduled, many are reached, all are counted', async () => {
  const server = await startTenantServer();
  onTestFinished(() => server.goAway());
  const made = await api<{ id: string; secret: string }>('POST', '/api/external/webhook-endpoints', {
    url: `${server.url}/hook`,
    description: REF,
    eventTypes: ['message', 'window.closing'],
    orderScope: 'conversation',
    bufferSeconds: 5,
    windowClosingMinutes: 30,
    alwaysWorkflowsFor: ['order'],
  });
  endpoint = made.id;
  const ids = [0, 1].map(() => `wamid.later-${randomBytes(6).toString('hex')}`);
  for (const id of ids) {
    const body = JSON.parse(textBody(id, `text of ${id}`));
    const { value } = body.entry[0].changes[0];
    value.contacts[0].wa_id = PHONE;
    Object.assign(value.messages[0], { from: PHONE, timestamp: String(Math.floor(Date.now() / 1_000)) });
    expect(await postUpstream(JSON.stringify(body))).toBe(200);
  }
  await expect.poll(() => server.accepted().length).toBe(1);
  const [hook] = server.accepted();
  const headers = hook?.headers as Record<string, string>;
  const batch = new Webhook(made.secret).verify(hook?.body ?? '', headers);
  expect(batch).toMatchObject({
    eventType: 'message.batch',
    count: 2,
    events: ids.map((eventId) => ({ eventId })),
  });

  const message = { phoneNumberId: number(), to: `+${PHONE}`, type: 'text', text: { body: REF } };
  const later = await api<Record<string, string>>('POST', '/api/external/messages', {
    ...message,
    sendAt: inMs(HOUR_MS),
  });
  scheduled = String(later.serviceMessageId);
  conversation = String(later.conversationId);
  expect(later.state).toBe('scheduled');
  const shown = await api('GET', `/api/external/conversations/${conversation}`);
  expect(shown).toMatchObject({
    customerServiceWindow: { isOpen: true },
    lastMessage: { metaMessageId: ids[1], direction: 'inbound' },
  });
  const share = await api('GET', `/api/external/webhook-endpoints/${endpoint}`);
  expect(share).toMatchObject({ bufferSeconds: 5, windowClosingMinutes: 30, alwaysWorkflowsFor: ['order'] });
});

test('the command line creates a broadcast, starts it, and moves the scheduled message', async () => {
  const file = await packCli(folder);
  const home = join(folder, 'home');
  mkdirSync(home);
  const cli = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCli(file, args, {
      ...environment(),
      HELIOGRAPH_CONFIG_DIR: home,
    });
    expect([code, code === 0 ? '' : stderr], args.join(' ')).toEqual([0, '']);
    return stdout;
  };
  const json = async (...args: string[]) => JSON.parse(await cli(...args, '--json'));
  writeFileSync(
    join(folder, 'customers.csv'),
    `to,ref,1,2\n+${PHONE},${REF},Asha,20 %\n+12025550199,,Ben,10 %\n`,
  );
  const named = ['--name', REF, '--from', number(), '--template', 'winter_sale', '--language', 'en_US'];
  ({ id: broadcast } = await json('create-broadcast', ...named));
  await cli('add-recipients', broadcast, '--recipients', `@${join(folder, 'customers.csv')}`);
  await cli('broadcast', broadcast, 'start');
  await expect.poll(async () => (await json('broadcasts', broadcast)).state).toBe('done');
  expect(reached(await json('broadcasts', broadcast))).toBe(2);
  await cli('move-scheduled', scheduled, '--at', inMs(2 * HOUR_MS));
  expect(JSON.stringify(await json('scheduled'))).toContain(`"serviceMessageId":"${scheduled}"`);
  const usage = async () =>
    (await json('usage', '--by', 'number')).rows.find(
      (row: { phoneNumberId: string }) => row.phoneNumberId === number(),
    );
  await expect.poll(usage).toMatchObject({ sent: expect.any(Number), received: expect.any(Number) });
  expect(JSON.stringify(await json('endpoints'))).toContain(REF);
});

test('a model reads all of it by MCP', async () => {
  const { HELIOGRAPH_URL, HELIOGRAPH_API_KEY } = environment();
  const mcp = await stdioClient({ HELIOGRAPH_URL, HELIOGRAPH_API_KEY });
  onTestFinished(() => mcp.close());
  const { tools } = await mcp.client.listTools();
  const nameOf = (wanted: RegExp) => tools.find(({ name }) => wanted.test(name))?.name ?? String(wanted);
  const asked = async (wanted: RegExp, args: Record<string, unknown> = {}) => {
    const { isError, text } = await mcp.call(nameOf(wanted), args);
    expect([wanted, isError ? text : '']).toEqual([wanted, '']);
    return text;
  };
  expect(await asked(/list_?scheduled_?messages/i)).toContain(scheduled);
  expect(await asked(/get_?broadcast$/i, { id: broadcast })).toContain('"done"');
  expect(await asked(/list_?broadcast_?recipients/i, { id: broadcast })).toContain(REF);
  expect(await asked(/get_?message_?usage/i, { groupBy: 'phoneNumberId' })).toContain(number());
  expect(await asked(/get_?webhook_?endpoint$/i, { id: endpoint })).toContain('"bufferSeconds"');
  expect(await asked(/get_?conversation$/i, { id: conversation })).toContain('winter_sale');
});

test('the portal shows all of it', async () => {
  const chrome = await launchChrome();
  onTestFinished(() => chrome.close());
  const page = await portalWindow(chrome, 'admin');
  const { apiUrl, tenants } = description();
  const says = async (path: string, ...texts: string[]) => {
    const answer = await page.goto(`${apiUrl}/portal/w/${tenants[0]?.wabaId}/${path}`);
    expect([path, answer?.status()]).toEqual([path, 200]);
    const main = await page.locator('main').innerText();
    for (const text of texts) expect(main, path).toContain(text);
  };
  await says('scheduled', REF);
  await says('broadcasts', REF);
  await says(`broadcasts/${broadcast}`, REF, 'winter_sale');
  await says('usage', 'Sent');
  await says(`conversations/${conversation}`, REF);
  await says(`endpoints/${endpoint}`, REF);
});

/** What each client prints: the scheduled message, the broadcast, the counts, and the last message of the conversation. */
const EXPECTED = () => [scheduled, 'done', 'true', 'template'];

test('the TypeScript client reads all of it', async () => {
  const project = join(folder, 'typescript');
  mkdirSync(project);
  await installClient(project, { [join(PROJECT, 'node_modules')]: ['standardwebhooks'] });
  const code = `import { createHeliograph } from '@heliograph/client';
const { HELIOGRAPH_URL: baseUrl, HELIOGRAPH_API_KEY: apiKey, SCHEDULED, BROADCAST: id, CONVERSATION } = process.env;
const heliograph = createHeliograph({ baseUrl, apiKey });
const { data: later } = await heliograph.listScheduledMessages({ query: { state: 'scheduled' } });
const { data: broadcast } = await heliograph.getBroadcast({ path: { id } });
const { data: usage } = await heliograph.getMessageUsage({});
const { data: conversation } = await heliograph.getConversation({ path: { id: CONVERSATION } });
const found = later.data.find(({ serviceMessageId }) => serviceMessageId === SCHEDULED);
console.log(JSON.stringify([found?.serviceMessageId, broadcast.state, String(usage.rows.length > 0), conversation.lastMessage?.type]));
`;
  writeFileSync(join(project, 'read.mjs'), code);
  const env = { ...process.env, ...environment() };
  const { stdout } = await run(oldestNode(), ['read.mjs'], { cwd: project, env });
  expect(JSON.parse(stdout)).toEqual(EXPECTED());
});

test('the Go client reads all of it', async ({ skip }) => {
  if (!(await provideGo())) return skip();
  const place = join(folder, 'go');
  mkdirSync(place);
  const client = join(PROJECT, 'clients', 'go');
  writeFileSync(
    join(place, 'go.mod'),
    `module example.com/read\n\ngo 1.23\n\nrequire heliograph/clients/go v0.0.0\n\nreplace heliograph/clients/go => ${client}\n`,
  );
  const code = `package main

import (
	"context"
	"fmt"
	"log"
	"os"

	heliograph "heliograph/clients/go"
)

func main() {
	ctx := context.Background()
	client := heliograph.New(os.Getenv("HELIOGRAPH_URL"), os.Getenv("HELIOGRAPH_API_KEY"))
	later, err := client.ListScheduledMessages(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	found := ""
	for _, message := range later.Data {
		if message.ServiceMessageID == os.Getenv("SCHEDULED") {
			found = message.ServiceMessageID
		}
	}
	broadcast, err := client.GetBroadcast(ctx, os.Getenv("BROADCAST"))
	if err != nil {
		log.Fatal(err)
	}
	usage, err := client.GetMessageUsage(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	conversation, err := client.GetConversation(ctx, os.Getenv("CONVERSATION"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found, broadcast.State, len(usage.Rows) > 0, conversation.LastMessage.Type)
}
`;
  writeFileSync(join(place, 'main.go'), code);
  const { stdout } = await run('go', ['run', '.'], { cwd: place, env: { ...process.env, ...environment() } });
  expect(stdout.trim().split(' ')).toEqual(EXPECTED());
});

test('the Python client reads all of it, and cancels the scheduled message', async ({ skip }) => {
  const python = await pythonEnvironment('client');
  if (python === null) return skip();
  const code = `import os
from heliograph import Heliograph

with Heliograph(os.environ["HELIOGRAPH_URL"], os.environ["HELIOGRAPH_API_KEY"]) as client:
    wanted = os.environ["SCHEDULED"]
    found = [one.service_message_id for one in client.iter_scheduled_messages() if one.service_message_id == wanted]
    broadcast = client.get_broadcast(os.environ["BROADCAST"])
    rows = client.get_message_usage().rows
    last = client.get_conversation(os.environ["CONVERSATION"]).last_message
    print(found[0], broadcast.state, str(len(rows) > 0).lower(), last.type if last else None)
    print(client.cancel_scheduled_message(wanted).state)
`;
  writeFileSync(join(folder, 'read.py'), code);
  const env = { ...process.env, ...environment(), PYTHONPATH: join(PROJECT, 'clients', 'python', 'src') };
  const { stdout } = await run(python.python, ['read.py'], { cwd: folder, env });
  const [read = '', cancelled] = stdout.trim().split('\n');
  expect(read.split(' ')).toEqual(EXPECTED());
  expect(cancelled).toBe('cancelled');
  expect(await api('GET', `/api/external/messages/${scheduled}`)).toMatchObject({ state: 'cancelled' });
});
