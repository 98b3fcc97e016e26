import type {
  Event,
  EventDetails,
  Replay,
  ReplayCount,
  ReplayDetails,
  RetriedDelivery,
  RetriedWebhookEndpoint,
} from '../../typescript/src/generated/types.gen.js';
import type { ApiClient } from './api-client.ts';
import { type Command, type Context, textOf, type Values } from './command.ts';
import { endpoints } from './commands-endpoints.ts';
import { EXIT, type ExitCode, Failure, wrongUsage } from './failure.ts';
import { bar, counted, fields, printable, table } from './output.ts';

const STATES = ['pending', 'delivered', 'failed', 'dropped'] as const;

const FILTERS = {
  type: { type: 'string', value: '<type>', help: 'events of this type' },
  state: {
    type: 'string',
    value: '<state>',
    help: `events with this state at one endpoint at least: ${STATES.join(', ')}`,
    choices: STATES,
  },
  'event-id': { type: 'string', value: '<eventId>', help: 'events with this eventId' },
  number: { type: 'string', value: '<phoneNumberId>', help: 'events of this number' },
  since: {
    type: 'string',
    value: '<time>',
    help: 'stored at this time or later, such as 2026-11-19T00:00:00Z, or 2h, 3d ago',
  },
  until: { type: 'string', value: '<time>', help: 'stored before this time' },
  limit: { type: 'string', value: '<n>', help: 'how many to show, 25 unless set' },
} as const;

const UNITS_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time as the API wants it. */
export function timeOf(text: string | undefined, name: string, nowMs = Date.now()): string | undefined {
  if (text === undefined) return undefined;
  const [, count, unit = ''] = /^(\d{1,5})([mhd])$/.exec(text) ?? [];
  const atMs = count === undefined ? Date.parse(text) : nowMs - Number(count) * (UNITS_MS[unit] ?? 0);
  if (!Number.isFinite(atMs))
    throw wrongUsage(`--${name} must be a time such as 2026-11-19T00:00:00Z, or 30m, 2h, 3d.`);
  return new Date(atMs).toISOString();
}

/** How many to show. */
export function limitOf(values: Values): number {
  const limit = Number(textOf(values, 'limit') ?? 25);
  if (Number.isInteger(limit) && limit > 0) return limit;
  throw wrongUsage('--limit must be a whole number above 0.');
}

const PAGE = 100;

/** The newest events that the options select. */
async function findEvents({ api, output }: Context, values: Values): Promise<Event[]> {
  const client = api();
  const limit = limitOf(values);
  const query = {
    type: textOf(values, 'type'),
    state: textOf(values, 'state'),
    eventId: textOf(values, 'event-id'),
    phoneNumberId: textOf(values, 'number'),
    since: timeOf(textOf(values, 'since'), 'since'),
    until: timeOf(textOf(values, 'until'), 'until'),
  };
  const found: Event[] = [];
  for (let cursor: string | undefined; found.length < limit; ) {
    const size = String(Math.min(PAGE, limit - found.length));
    type Page = { data: Event[]; hasMore: boolean; nextCursor: string | null };
    const page = await client.call<Page>('GET', '/api/external/events', {
      query: { ...query, limit: size, cursor },
    });
    found.push(...page.data);
    if (limit > PAGE) output.progress(bar(found.length, limit));
    if (!page.hasMore || page.nextCursor === null) break;
    cursor = page.nextCursor;
  }
  output.progress('');
  return found;
}

const events: Command = {
  name: 'events',
  operands: '[event]',
  count: [0, 1],
  summary: 'list events, or show one with its deliveries and attempts',
  options: FILTERS,
  examples: [
    'heliograph events --state failed --since 2h',
    'heliograph events evt_019aa2b37c4d7e8f9a0b1c2d3e4f5061',
  ],
  async run(context, [id], values) {
    const { output, isJson } = context;
    if (id !== undefined) return await showEvent(context, id);
    const found = await findEvents(context, values);
    if (isJson) output.json(found);
    else if (found.length === 0) output.note('There are no such events.');
    else {
      const rows = found.map(({ id: one, createdAt, eventType, eventId, deliverySummary }) => [
        ...[createdAt, eventType, printable(eventId), one],
        STATES.filter((state) => deliverySummary[state] > 0)
          .map((state) => `${deliverySummary[state]} ${state}`)
          .join(', '),
      ]);
      output.line(table(['STORED', 'TYPE', 'EVENT ID', 'ID', 'DELIVERIES'], rows));
    }
    return EXIT.ok;
  },
};

async function eventOf(api: ApiClient, id: string): Promise<EventDetails> {
  return await api.call<EventDetails>('GET', `/api/external/events/${encodeURIComponent(id)}`);
}

async function showEvent({ api, output, isJson }: Context, id: string): Promise<ExitCode> {
  const event = await eventOf(api(), id);
  if (isJson) {
    output.json(event);
    return EXIT.ok;
  }
  const { eventType, eventId, sequence, createdAt, occurredAt, body, deliveries } = event;
  output.line(
    fields([
      ['id', event.id],
      ['type', eventType],
      ['eventId', printable(eventId)],
      ['sequence', String(sequence)],
      ['stored', createdAt],
      ['occurred', occurredAt ?? 'not released'],
    ]),
  );
  if (deliveries.length > 0) output.line(`\n${attemptTable(deliveries, output)}`);
  output.line(`\n${JSON.stringify(body, null, 2)}`);
  return EXIT.ok;
}

function attemptTable(deliveries: EventDetails['deliveries'], { style }: Context['output']): string {
  const rows = deliveries.flatMap(({ id, endpointId, state, nextAttemptAt, attempts }) => [
    [
      id,
      endpointId,
      style(state === 'delivered' ? 'green' : state === 'failed' ? 'red' : 'yellow', state),
      '',
      '',
      nextAttemptAt === null ? '' : `next attempt ${nextAttemptAt}`,
    ],
    ...attempts.map(({ attempt, startedAt, durationMs, statusCode, error }) => [
      ...['', '', `  attempt ${attempt}`, startedAt, `${Math.round(durationMs)} ms`],
      statusCode === null ? printable(error?.message ?? '') : `HTTP ${statusCode}`,
    ]),
  ]);
  return table(['DELIVERY', 'ENDPOINT', 'STATE', 'STARTED', 'TIME', 'RESPONSE'], rows);
}

const deliveries: Command = {
  name: 'deliveries',
  operands: '[event]',
  count: [0, 1],
  summary: 'list deliveries with their attempts: of one event, or of the newest events',
  options: {
    ...FILTERS,
    state: { ...FILTERS.state, help: `deliveries in this state: ${STATES.join(', ')}` },
    endpoint: { type: 'string', value: '<id>', help: 'deliveries to this endpoint' },
    limit: { ...FILTERS.limit, help: 'of how many events to show deliveries, 25 unless set' },
  },
  examples: ['heliograph deliveries --state failed --limit 10'],
  async run(context, [id], values) {
    const { output, isJson } = context;
    const [state, endpoint] = [textOf(values, 'state'), textOf(values, 'endpoint')];
    const isWanted = (one: EventDetails['deliveries'][number]) =>
      (state === undefined || one.state === state) && (endpoint === undefined || one.endpointId === endpoint);
    const client = context.api();
    const ids = id === undefined ? (await findEvents(context, values)).map((event) => event.id) : [id];
    const found: EventDetails['deliveries'] = [];
    for (const [index, one] of ids.entries()) {
      if (ids.length > 1) output.progress(bar(index, ids.length));
      found.push(...(await eventOf(client, one)).deliveries.filter(isWanted));
    }
    output.progress('');
    if (isJson) output.json(found);
    else if (found.length === 0) output.note('There are no such deliveries.');
    else output.line(attemptTable(found, output));
    return EXIT.ok;
  },
};

const retry: Command = {
  name: 'retry',
  operands: '[delivery]',
  count: [0, 1],
  summary: 'make the next attempt of a pending delivery now',
  details: 'With --endpoint: of everything that waits for a retry there. Order is kept.',
  options: { endpoint: { type: 'string', value: '<id>', help: 'the endpoint' } },
  examples: ['heliograph retry dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5062', 'heliograph retry --endpoint 3'],
  async run({ api, output, isJson }, [id], values) {
    const endpoint = textOf(values, 'endpoint');
    if ((id === undefined) === (endpoint === undefined))
      throw wrongUsage('Name a delivery, or --endpoint <id>.');
    if (id !== undefined) {
      const path = `/api/external/deliveries/${encodeURIComponent(id)}/retry`;
      const done = await api().call<RetriedDelivery>('POST', path, { body: {} });
      if (isJson) output.json(done);
      else output.line(done.retried ? 'The next attempt is made now.' : 'The next attempt was due anyway.');
      return EXIT.ok;
    }
    const path = `/api/external/webhook-endpoints/${encodeURIComponent(endpoint ?? '')}/retry`;
    const done = await api().call<RetriedWebhookEndpoint>('POST', path, { body: {} });
    if (isJson) output.json(done);
    else
      output.line(
        `${done.retried === 0 ? 'Nothing waits for a retry there.' : `Attempted now: ${counted(done.retried, 'delivery')}.`}${done.more ? ' There are more: run it again.' : ''}`,
      );
    return EXIT.ok;
  },
};

const replay: Command = {
  name: 'replay',
  operands: '[event]',
  count: [0, 1],
  summary: 'send an event again, or all that failed in a time',
  options: {
    endpoint: { type: 'string', value: '<id>', help: 'to this endpoint only' },
    state: {
      type: 'string',
      value: '<states>',
      help: 'delivered, failed, dropped, not_sent; failed unless set',
    },
    since: FILTERS.since,
    until: FILTERS.until,
    type: { type: 'string', value: '<types>', help: 'event types, separated by commas' },
    'dry-run': { type: 'boolean', help: 'count only' },
    wait: { type: 'boolean', help: 'wait for the outcome; the exit code is 1 when a delivery fails' },
  },
  examples: [
    'heliograph replay evt_019aa2b37c4d7e8f9a0b1c2d3e4f5061 --endpoint 3',
    'heliograph replay --since 2h --wait',
  ],
  async run(context, [id], values) {
    const { api, output, isJson } = context;
    const client = api();
    const endpointId = textOf(values, 'endpoint');
    if (id === undefined && values.since === undefined) throw wrongUsage('Name an event, or --since <time>.');
    if (id !== undefined && values['dry-run'] === true)
      throw wrongUsage('--dry-run counts what --since selects: leave the event out.');
    if (values['dry-run'] === true) return await countReplay(context, values);
    const started = await startReplay(client, id, endpointId, values);
    if (started === null) {
      if (isJson) output.json(null);
      else output.line('There is nothing to send again in this selection.');
      return EXIT.ok;
    }
    if (values.wait !== true) {
      if (isJson) output.json(started);
      else output.line(`Replay ${started.id}: queued again: ${counted(started.total, 'delivery')}.`);
      return EXIT.ok;
    }
    const done = await waitForReplay(context, client, started.id);
    const { delivered, failed, pending } = done.outcomes;
    if (isJson) output.json(done);
    else output.line(`Replay ${done.id}: ${delivered} delivered, ${failed} failed, ${pending} pending.`);
    return failed > 0 ? EXIT.failed : EXIT.ok;
  },
};

/** Null: the selection has nothing to send again. */
async function startReplay(
  client: ApiClient,
  id: string | undefined,
  endpointId: string | undefined,
  values: Values,
): Promise<Replay | null> {
  if (id !== undefined) {
    const path = `/api/external/events/${encodeURIComponent(id)}/replay`;
    return await client.call<Replay>('POST', path, { body: { endpointId } });
  }
  return await client
    .call<Replay>('POST', '/api/external/replays', { body: selectionOf(values) })
    .catch((error: unknown) => {
      if (error instanceof Failure && error.code === 'nothing_to_replay') return null;
      throw error;
    });
}

async function countReplay({ api, output, isJson }: Context, values: Values): Promise<ExitCode> {
  const body = { ...selectionOf(values), dryRun: true };
  const count = await api().call<ReplayCount>('POST', '/api/external/replays', { body });
  if (isJson) output.json(count);
  else {
    const { pending, noBody, endpointGone } = count.skipped;
    const sum = pending + noBody + endpointGone;
    const skipped = sum === 0 ? '' : ` Skipped: ${counted(sum, 'delivery')}.`;
    output.line(`To send again: ${counted(count.deliveries, 'delivery')}.${skipped} Nothing was sent.`);
  }
  return EXIT.ok;
}

function selectionOf(values: Values) {
  const list = (name: string) =>
    textOf(values, name)
      ?.split(',')
      .map((one) => one.trim());
  return {
    endpointId: textOf(values, 'endpoint'),
    from: timeOf(textOf(values, 'since'), 'since'),
    to: timeOf(textOf(values, 'until'), 'until') ?? new Date().toISOString(),
    eventTypes: list('type'),
    states: list('state') ?? ['failed'],
  };
}

const POLL_MS = 500;

async function waitForReplay({ output }: Context, api: ApiClient, id: string): Promise<ReplayDetails> {
  for (;;) {
    const replay = await api.call<ReplayDetails>('GET', `/api/external/replays/${id}`);
    const { pending, delivered, failed, dropped } = replay.outcomes;
    output.progress(bar(delivered + failed + dropped, replay.total));
    if (replay.state !== 'running' && pending === 0) {
      output.progress('');
      return replay;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

export const EVENT_COMMANDS: readonly Command[] = [events, deliveries, endpoints, retry, replay];
