/**
 * Takes the animated picture of docs/tenants/cli.md: a new user logs in, listens, looks into a failure, and sends samples, with
 * the built tool (`npm run cli`) on a terminal of its own and a stack that runs (`npm start -- --fresh`).
 * Run: node scripts/film-cli.ts [--data-dir .data] [--out docs/screenshots/cli-film.webp] [--keep]
 */

import { createHmac } from 'node:crypto';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Film } from './screenshots/film-frames.ts';
import { launchChromium, runningStack } from './screenshots/stack-browser.ts';
import { runOnTerminal, Terminal } from './screenshots/terminal.ts';

const WINDOW = { left: 0, width: 960, height: 600 };
const PAGE = `<!doctype html><body style="margin:0;background:#0d1117"><pre id="terminal" style="margin:0;padding:62px 16px 0;
color:#e6edf3;font:13.6px/20px 'DejaVu Sans Mono',monospace"></pre>`;
const TOOL = fileURLToPath(new URL('../clients/cli/dist/heliograph.js', import.meta.url));

const { values } = parseArgs({
  options: {
    'data-dir': { type: 'string', default: '.data' },
    out: { type: 'string', default: 'docs/screenshots/cli-film.webp' },
    keep: { type: 'boolean', default: false },
  },
});

const stack = runningStack(values['data-dir']);
const [tenant] = stack.tenants;
if (tenant === undefined) throw new Error('the demonstration has no tenant');
const home = mkdtempSync(join(tmpdir(), 'heliograph-'));
const env = { PATH: process.env.PATH, HOME: home, TERM: 'xterm-256color', LANG: 'C.UTF-8' };
const terminal = new Terminal();
const browser = await launchChromium();
const film = new Film();
const page = await browser.newPage({ viewport: { width: WINDOW.width, height: WINDOW.height } });
await page.setContent(PAGE);
const receiver = await startReceiver();
try {
  await logIn();
  await receiveAndRepair();
  await sendSamples();
  await explainSignature();
  const ms = film.write(values.out);
  process.stdout.write(
    `${values.out}: ${ms / 1_000} s, ${Math.round(statSync(values.out).size / 1_024)} KB\n`,
  );
} finally {
  if (values.keep) process.stdout.write(`frames: ${film.directory()}\n`);
  else film.remove();
  receiver.close();
  await browser.close();
  rmSync(home, { recursive: true, force: true });
}

/** The server of a developer, whose first version has a mistake. */
async function startReceiver() {
  let status = 500;
  const server = createServer((request, response) => {
    request.resume();
    const text = status === 500 ? 'TypeError: order is undefined' : '';
    request.on('end', () => response.writeHead(status).end(text));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const repair = (): void => {
    status = 200;
  };
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { port: (server.address() as AddressInfo).port, repair, close };
}

async function frame(ms: number): Promise<void> {
  await page.evaluate(`document.getElementById('terminal').innerHTML = ${JSON.stringify(terminal.html())}`);
  await film.take(page, WINDOW, ms);
}

/** Types a command as the user sees it, and runs it. */
async function command(shown: string, actual = shown) {
  const step = 12;
  terminal.write('\u001b[32m$\u001b[0m ');
  for (let at = 0; at < shown.length; at += step) {
    terminal.write(shown.slice(at, at + step));
    await frame(110);
  }
  terminal.write('\n');
  return runOnTerminal(terminal, actual.replace(/^heliograph/, `${process.execPath} ${TOOL}`), env);
}

async function shows(text: string | RegExp): Promise<void> {
  const deadline = performance.now() + 30_000;
  const isThere = () =>
    typeof text === 'string' ? terminal.text().includes(text) : text.test(terminal.text());
  while (!isThere()) {
    if (performance.now() > deadline)
      throw new Error(`the terminal never showed ${text}:\n${terminal.text()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function customerWrites(body: string): Promise<void> {
  const response = await fetch(`${stack.sandboxUrl}/sandbox/inbound`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      from: '12025550143',
      name: 'Asha Tester',
      type: 'text',
      body,
      phoneNumberId: tenant?.phoneNumberIds[0],
    }),
  });
  if (!response.ok) throw new Error(`the sandbox returned ${response.status}`);
}

async function logIn(): Promise<void> {
  film.say('Log in with an API key');
  const login = await command(`heliograph login --url ${stack.apiUrl}`);
  await shows('it is not shown');
  await frame(900);
  login.type(`${tenant?.apiKey}\r`);
  await login.ended;
  await frame(1_500);
}

async function receiveAndRepair(): Promise<void> {
  film.say('Live events to the server on your machine: no tunnel');
  const listen = await command(`heliograph listen --forward-to http://localhost:${receiver.port}/webhooks`);
  await shows('Waiting for events.');
  await frame(1_500);
  film.say('A customer writes. The server has a mistake');
  await customerWrites('Where is my order?');
  await shows('TypeError');
  await frame(2_000);
  film.say('Repaired: r sends the same event again');
  receiver.repair();
  listen.type('r');
  await shows(/attempt 2.*200/);
  await frame(1_800);
  await customerWrites('Thank you!');
  await shows(/#\d+ 200/);
  await frame(1_200);
  listen.type('q');
  await listen.ended;
}

async function sendSamples(): Promise<void> {
  film.say('Sample events, by the real path to an endpoint');
  for (const sample of ['image', 'order']) {
    await (await command(`heliograph trigger ${sample} --to ${tenant?.endpointId}`)).ended;
    await frame(1_200);
  }
}

async function explainSignature(): Promise<void> {
  film.say('Why does my signature not match?');
  const time = Math.floor(Date.now() / 1_000);
  const secret = tenant?.webhookSecret ?? '';
  const shown =
    'heliograph verify --secret "$SECRET" --body @body.json --header "webhook-id: $ID" --header "webhook-timestamp: $TIME" --header "webhook-signature: $SIGNATURE"';
  const verify = await command(
    shown,
    `cd ${home}; ${signedParts(secret, time)} ${shown.replace('heliograph', `${process.execPath} ${TOOL}`)}`,
  );
  await verify.ended;
  await frame(3_500);
}

/** A body that was parsed and written again before it was verified: the usual mistake. */
function signedParts(secret: string, time: number): string {
  const body = '{"id":"evt_1","data":{"total":1050}}';
  const id = 'evt_1';
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64');
  writeFileSync(join(home, 'body.json'), JSON.stringify(JSON.parse(body), null, 2));
  return `export SECRET='${secret}' ID=${id} TIME=${time} SIGNATURE='v1,${signature}';`;
}
