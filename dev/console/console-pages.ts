import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { PAGES } from '../../src/api/portal/access/page-access.ts';
import { pageNotFound, roleRefused } from '../../src/api/portal/access/page-error.ts';
import { viewerOf } from '../../src/api/portal/access/viewer.ts';
import type { PortalApp, PortalContext } from '../../src/api/portal/portal-app.ts';
import { choicesOf } from './chat-text.ts';
import { EMOJIS } from './chat-thread.ts';
import { type AskedChoice, type ConsoleChoice, consolePath, mayPlay, readChoice } from './console-choice.ts';
import { consoleViews, sendConsole } from './console-views.ts';
import { CustomerFormError, customerMessage, type Sender } from './customer-messages.ts';
import { fieldChange, MAX_VALUE_CHARS } from './field-form.ts';
import { type FormFile, takeMultipartForms } from './multipart-form.ts';
import { consoleAssets } from './sample-files.ts';
import {
  type ChatEntry,
  createSandboxClient,
  type SandboxClient,
  SandboxRefusedError,
} from './sandbox-client.ts';
import { TENANT_ANSWERS, TENANT_TIMES } from './tenant-controls.ts';

/** The sandbox console. There is none in production mode, and none without a sandbox. */
export function sandboxPages(app: PortalApp, context: PortalContext): void {
  const { mode, sandbox } = context.config;
  if (mode !== 'development' || sandbox.controlUrl === '' || sandbox.receiverUrl === '') return;
  const client = createSandboxClient(sandbox);
  // Every page then leads to the console.
  app.decorate('portalSandbox', true);
  app.register(async (scope: PortalApp) => {
    takeMultipartForms(scope);
    consoleAssets(scope);
    consoleViews(scope, context, client);
    consoleActions(scope, context, client);
  });
}

/**
 * The request to the sandbox for a tap on a message: `react <n> <emoji>` or `choose <n> <index>`. What is sent is
 * looked up in the chat, not taken from the form. Throws CustomerFormError.
 */
export function tappedMessage(
  tap: string,
  thread: readonly ChatEntry[],
  sender: Sender,
): Record<string, unknown> {
  const [, what, number, detail = ''] = /^(react|choose) (\d{1,9}) (.{1,10})$/u.exec(tap) ?? [];
  const entry = thread.find(({ n }) => n === Number(number));
  if (what === undefined || entry === undefined) throw new CustomerFormError('This message is gone.');
  if (what === 'react') {
    if (!EMOJIS.some((emoji) => emoji === detail)) throw new CustomerFormError('There is no such reaction.');
    return { ...sender, type: 'reaction', targetId: entry.id, emoji: detail };
  }
  const choice = entry.side === 'business' ? choicesOf(entry)[Number(detail)] : undefined;
  if (choice === undefined) throw new CustomerFormError('This message has no such button.');
  const { kind, id, title, description } = choice;
  if (kind === 'button') return { ...sender, type: 'button', replyTo: entry.id, payload: id, text: title };
  const reply = {
    interactiveType: kind,
    choiceId: id,
    title,
    ...(kind === 'list_reply' ? { description } : {}),
  };
  return { ...sender, type: 'interactive', replyTo: entry.id, ...reply };
}

const line = Type.Optional(Type.String({ maxLength: 100 }));
const CHOICE = { number: line, customer: line };

const BURST = 100;
const AT_A_TIME = 10;

/** A page that is loaded right after a form shall show what came of it. */
const LOOK_AGAIN_MS = 700;

type Tools = { context: PortalContext; client: SandboxClient };
type Act = (choice: ConsoleChoice) => Promise<'sent' | 'tenant' | 'burst' | 'field'>;

/** The forms of the console: each answers a script with JSON, and a browser without one with the page. */
function consoleActions(app: PortalApp, context: PortalContext, client: SandboxClient): void {
  const tools = { context, client };
  messageForm(app, tools);
  tapForm(app, tools);
  tenantForm(app, tools);
  fieldForm(app, tools);
}

function messageForm(app: PortalApp, tools: Tools): void {
  const { client } = tools;
  app.post(
    '/portal/sandbox/messages',
    {
      config: PAGES.signedIn,
      schema: {
        body: Type.Object({
          ...CHOICE,
          kind: Type.String({ maxLength: 100 }),
          text: Type.Optional(Type.String({ maxLength: 4_096 })),
          replyTo: line,
          file: Type.Optional(Type.Unknown()),
        }),
      },
    },
    async (request, reply) =>
      await act(tools, request, reply, request.body, async (choice) => {
        const { kind, text = '', file, replyTo } = request.body;
        if (kind === 'burst') return await burst(client, senderOf(choice));
        const form = { kind, text, file: isFile(file) ? file : null };
        const message = await customerMessage(client, form, senderOf(choice));
        await send(client, { ...message, ...(await replyOf(client, choice, replyTo)) });
        return 'sent';
      }),
  );
}

function tapForm(app: PortalApp, tools: Tools): void {
  const { client } = tools;
  app.post(
    '/portal/sandbox/taps',
    {
      config: PAGES.signedIn,
      schema: { body: Type.Object({ ...CHOICE, tap: Type.String({ maxLength: 40 }) }) },
    },
    async (request, reply) =>
      await act(tools, request, reply, request.body, async (choice) => {
        const thread = await threadOf(client, choice);
        await send(client, tappedMessage(request.body.tap, thread, senderOf(choice)));
        return 'sent';
      }),
  );
}

function tenantForm(app: PortalApp, tools: Tools): void {
  const { client } = tools;
  app.post(
    '/portal/sandbox/tenant',
    {
      config: PAGES.signedIn,
      schema: { body: Type.Object({ ...CHOICE, answer: Type.String({ maxLength: 20 }), times: line }) },
    },
    async (request, reply) =>
      await act(tools, request, reply, request.body, async ({ number }) => {
        const { answer, times = 'all' } = request.body;
        const chosen = Object.hasOwn(TENANT_ANSWERS, answer) ? TENANT_ANSWERS[answer] : undefined;
        const often = Object.hasOwn(TENANT_TIMES, times) ? TENANT_TIMES[times] : undefined;
        if (chosen === undefined || often === undefined) throw new CustomerFormError('Unknown response.');
        const limit = often.times === null || answer === 'ok' ? {} : { times: often.times };
        await client.setBehaviour({ ...chosen.behaviour, ...limit, name: number.wabaId });
        return 'tenant';
      }),
  );
}

function fieldForm(app: PortalApp, tools: Tools): void {
  const body = Type.Object({
    ...CHOICE,
    field: Type.String({ maxLength: 100 }),
    value: Type.Optional(Type.String({ maxLength: MAX_VALUE_CHARS })),
  });
  app.post('/portal/sandbox/fields', { config: PAGES.signedIn, schema: { body } }, async (request, reply) =>
    act(tools, request, reply, request.body, async ({ number }) => {
      const { field, value = '' } = request.body;
      const { status } = await tools.client.sendField(fieldChange({ field, value }, number.phoneNumberId));
      if (status !== 200) throw refusedByGateway(status);
      return 'field';
    }),
  );
}

/** Does what a form asks, for those who may, and answers. */
async function act(
  { context, client }: Tools,
  request: FastifyRequest,
  reply: FastifyReply,
  asked: AskedChoice,
  work: Act,
): Promise<FastifyReply> {
  const viewer = viewerOf(request);
  if (!mayPlay(viewer)) throw roleRefused();
  const choice = await readChoice(context.database, client, viewer, asked);
  // A number that is not theirs is none: nothing is sent to another in its place.
  const isOther = asked.number !== undefined && asked.number !== choice?.number.phoneNumberId;
  if (choice === null || isOther) throw pageNotFound();
  const isScript = request.headers.accept === 'application/json';
  try {
    const done = await work(choice);
    if (isScript) return reply.send({ done });
    await sleep(LOOK_AGAIN_MS);
    return reply.redirect(consolePath(choice, `&done=${done}`), 303);
  } catch (error) {
    if (!(error instanceof CustomerFormError) && !(error instanceof SandboxRefusedError)) throw error;
    if (isScript) return reply.code(422).send({ message: error.message });
    const notice = { kind: 'error' as const, text: error.message };
    return await sendConsole(context, client, request, reply, { asked, notice });
  }
}

function senderOf({ customer, number }: ConsoleChoice): Sender {
  return { from: customer.waId, name: customer.name, phoneNumberId: number.phoneNumberId };
}

async function threadOf(client: SandboxClient, { number, customer }: ConsoleChoice) {
  const chat = await client.chat(number.wabaId);
  return chat.filter(
    (entry) => entry.phoneNumberId === number.phoneNumberId && entry.customer === customer.waId,
  );
}

async function replyOf(
  client: SandboxClient,
  choice: ConsoleChoice,
  replyTo: string | undefined,
): Promise<{ replyTo?: string }> {
  if (replyTo === undefined || replyTo === '') return {};
  const entry = (await threadOf(client, choice)).find(({ n }) => String(n) === replyTo);
  if (entry === undefined) throw new CustomerFormError('The message that you reply to is gone.');
  return { replyTo: entry.id };
}

async function send(client: SandboxClient, message: Record<string, unknown>): Promise<void> {
  const { status } = await client.send(message);
  if (status !== 200) throw refusedByGateway(status);
}

function refusedByGateway(status: number): SandboxRefusedError {
  return new SandboxRefusedError(`The gateway answered ${status} to the platform's webhook.`);
}

async function burst(client: SandboxClient, sender: Sender): Promise<'burst'> {
  for (let first = 1; first <= BURST; first += AT_A_TIME) {
    const numbers = Array.from({ length: AT_A_TIME }, (_, at) => first + at);
    await Promise.all(
      numbers.map((n) => send(client, { ...sender, type: 'text', body: `Message ${n} of ${BURST}` })),
    );
  }
  return 'burst';
}

function isFile(value: unknown): value is FormFile {
  return typeof value === 'object' && value !== null && 'bytes' in value && Buffer.isBuffer(value.bytes);
}
