import { randomUUID } from 'node:crypto';
import type {
  AccountIdentity,
  Conversation,
  SentMessage,
  TestOutcome,
  TestRequest,
} from '../../typescript/src/generated/types.gen.js';
import type { ApiClient } from './api-client.ts';
import { type Command, type Context, textOf, type Values } from './command.ts';
import { listEndpoints } from './commands-endpoints.ts';
import { EXIT, Failure, wrongUsage } from './failure.ts';
import { readText } from './given-files.ts';
import { fields, printable, table } from './output.ts';

type Sample = NonNullable<TestRequest['sample']>;

const SAMPLES: readonly Sample[] = [
  'test',
  'message',
  'image',
  'location',
  'button',
  'status',
  'status.failed',
  'payment',
  'order',
  'media.ready',
  'window.closing',
  'preference',
];

const trigger: Command = {
  name: 'trigger',
  operands: '<sample>',
  count: [1, 1],
  choices: SAMPLES,
  summary: 'send a sample event to an endpoint',
  details: `Samples: ${SAMPLES.join(', ')}. They go the way of every event: stored, signed, delivered, retried. "listen" gets them too. With --same-event-id two events with one eventId are sent: a server that deduplicates by eventId instead of webhook-id loses the second.`,
  options: {
    to: {
      type: 'string',
      value: '<endpoint>',
      help: 'id of the endpoint; not needed when there is only one',
    },
    'same-event-id': { type: 'boolean', help: 'send two events with one eventId' },
  },
  examples: ['heliograph trigger image --to 3', 'heliograph trigger status --to 3 --same-event-id'],
  async run({ api, output, isJson }, [name = ''], values) {
    const sample = SAMPLES.find((one) => one === name);
    if (sample === undefined)
      throw wrongUsage(`There is no sample ${JSON.stringify(name)}. Samples: ${SAMPLES.join(', ')}.`);
    const isTwice = values['same-event-id'] === true;
    if (isTwice && sample === 'test')
      throw wrongUsage('A test event always has a new eventId: take another sample.');
    const client = api();
    const path = `/api/external/webhook-endpoints/${encodeURIComponent(textOf(values, 'to') ?? (await onlyEndpoint(client)))}/test`;
    const body: TestRequest = sample === 'test' ? {} : { sample };
    const outcomes = [await client.call<TestOutcome>('POST', path, { body })];
    const eventId = outcomes[0]?.eventId ?? '';
    if (isTwice) outcomes.push(await client.call<TestOutcome>('POST', path, { body: { ...body, eventId } }));
    if (isJson) output.json(isTwice ? outcomes : outcomes[0]);
    else {
      const rows = outcomes.map(({ state, statusCode, error, durationMs, id, ...one }) => [
        ...[state, one.eventId, id, statusCode === null ? printable(error ?? '') : `HTTP ${statusCode}`],
        durationMs === null ? '' : `${Math.round(durationMs)} ms`,
      ]);
      output.line(table(['STATE', 'EVENT ID', 'WEBHOOK-ID', 'RESPONSE', 'TIME'], rows));
      if (isTwice)
        output.note('Both count: the eventId is the same, the webhook-id is not. Deduplicate by webhook-id.');
    }
    return outcomes.every(({ state }) => state === 'delivered') ? EXIT.ok : EXIT.failed;
  },
};

async function onlyEndpoint(api: ApiClient): Promise<string> {
  const data = await listEndpoints(api);
  const [only, ...others] = data;
  if (only === undefined)
    throw wrongUsage(
      'There is no endpoint yet: add one in the portal, or with POST /api/external/webhook-endpoints.',
    );
  if (others.length === 0) return only.id;
  const list = data.map(({ id, url }) => `${id} (${url})`).join(', ');
  throw wrongUsage(`Name the endpoint with --to: ${list}.`);
}

const send: Command = {
  name: 'send',
  summary: 'send a message to a customer',
  options: {
    to: { type: 'string', value: '<number>', help: 'phone number of the customer, such as +12025550143' },
    text: { type: 'string', value: '<text>', help: 'send this text' },
    from: {
      type: 'string',
      value: '<phoneNumberId>',
      help: 'number to send from; unless set, that of the newest conversation, or the only one',
    },
    at: {
      type: 'string',
      value: '<time>',
      help: 'send it then, such as 2026-12-01T09:00:00+01:00: 30 seconds to 35 days ahead',
    },
    body: {
      type: 'string',
      value: '<json|@file|->',
      help: 'the whole message as JSON, in place of --to and --text',
    },
    'idempotency-key': {
      type: 'string',
      value: '<key>',
      help: 'a request with the same key sends nothing twice',
    },
  },
  examples: [
    'heliograph send --to +12025550143 --text "Your order is ready."',
    'heliograph send --to +12025550143 --text "Your order is ready." --at 2026-12-01T09:00:00+01:00',
    'heliograph send --body @message.json',
  ],
  async run(context, _operands, values) {
    const { api, output, isJson } = context;
    const client = api();
    const key = textOf(values, 'idempotency-key') ?? randomUUID();
    const json = await messageOf(context, client, values);
    const headers = { 'idempotency-key': key };
    const sent = await client
      .call<SentMessage>('POST', '/api/external/messages', { json, headers })
      .catch((error: unknown) => {
        // After a refusal the same command would be refused again.
        if (error instanceof Failure && error.exitCode === EXIT.unreachable)
          output.note(`To try again without sending twice: --idempotency-key ${key}`);
        throw error;
      });
    if (isJson) output.json(sent);
    else {
      output.line(
        fields([
          ['state', sent.state],
          ['serviceMessageId', sent.serviceMessageId],
          ['metaMessageId', sent.metaMessageId ?? undefined],
          ['sendAt', sent.sendAt],
          ['advice', sent.advice],
        ]),
      );
    }
    return EXIT.ok;
  },
};

/** The message as JSON. */
async function messageOf(context: Context, api: ApiClient, values: Values): Promise<string> {
  const [given, to, body] = [textOf(values, 'body'), textOf(values, 'to'), textOf(values, 'text')];
  const sendAt = textOf(values, 'at');
  if (given !== undefined) {
    if (to !== undefined || body !== undefined || sendAt !== undefined)
      throw wrongUsage('--body is the whole message: leave --to, --text and --at out.');
    const json = readText(given, 'body');
    try {
      JSON.parse(json);
      return json;
    } catch (error) {
      throw wrongUsage(`--body is no JSON: ${(error as Error).message}`);
    }
  }
  if (to === undefined || body === undefined)
    throw wrongUsage('Say --to <number> and --text <text>, or --body <json>.');
  const phoneNumberId = textOf(values, 'from') ?? (await usualNumber(context, api, to));
  return JSON.stringify({ phoneNumberId, to, type: 'text', text: { body }, sendAt });
}

/** The number that the customer knows, otherwise that of the newest conversation, otherwise the only one. */
async function usualNumber({ output }: Context, api: ApiClient, customer: string): Promise<string> {
  const { phoneNumbers } = await api.call<AccountIdentity>('GET', '/me');
  const [only, ...others] = phoneNumbers;
  if (only !== undefined && others.length === 0) return only.phoneNumberId;
  const search = async (wanted: object) => {
    const body = { ...wanted, limit: 1 };
    type Page = { data: Conversation[] };
    const page = await api.call<Page>('POST', '/api/external/conversations/search', { body });
    return page.data[0]?.phoneNumberId;
  };
  const newest = (await search({ customer })) ?? (await search({}));
  const chosen = phoneNumbers.find(({ phoneNumberId }) => phoneNumberId === newest);
  if (chosen === undefined) {
    const list = phoneNumbers.map((one) => `${one.phoneNumberId} (${one.displayPhoneNumber})`).join(', ');
    throw wrongUsage(`Name the number to send from with --from: ${list}.`);
  }
  output.note(
    `From ${chosen.displayPhoneNumber}, the number of the newest conversation (--from names another).`,
  );
  return chosen.phoneNumberId;
}

export const SENDING_COMMANDS: readonly Command[] = [trigger, send];
