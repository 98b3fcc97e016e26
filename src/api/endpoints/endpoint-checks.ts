import { type Static, Type } from 'typebox';
import { sendTestEvent } from '../../deliveries/test-event.ts';
import { readEndpointStatistics } from '../../endpoints/endpoint-statistics.ts';
import { endpointStatus } from '../../endpoints/endpoints.ts';
import { ApiError } from '../errors/api-error.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import {
  accountObjectId,
  count,
  dateTime,
  NoBody,
  NoQuery,
  nullable,
  parameter,
  Time,
  text,
  timeOf,
} from '../external/schema-kit.ts';
import { accountOf, apiActorOf, SCOPES } from '../keys/api-key-auth.ts';
import { documented } from '../openapi/documented.ts';
import { IdParams, Waiting } from './endpoint-schemas.ts';

const STEP_MS = { minute: 60_000, hour: 3_600_000 };
const DEFAULT_STEPS = { minute: 60, hour: 24 };
/** A day of minutes, two months of hours. */
const MAX_STEPS = 1_440;

const StatisticsQuery = Type.Object(
  {
    interval: Type.Optional(
      parameter(Type.Enum(['minute', 'hour'], { default: 'hour' }), 'The length of a step.', 'hour'),
    ),
    since: Type.Optional(parameter(Time, 'The start of the first step.', '2026-11-20T00:00:00Z')),
    until: Type.Optional(parameter(Time, 'The end of the last step; not in it.', '2026-11-21T00:00:00Z')),
  },
  { additionalProperties: false },
);

const Counts = {
  successes: count(1_180),
  failures: count(12),
  meanDurationMs: nullable(Type.Number(), 74.2),
};

const Statistics = Type.Object(
  {
    endpointId: text('3'),
    interval: Type.Enum(['minute', 'hour'], { examples: ['hour'] }),
    since: dateTime('2026-11-20T10:00:00.000Z'),
    until: dateTime('2026-11-21T10:00:00.000Z'),
    total: Type.Object(Counts),
    waiting: Waiting,
    data: Type.Array(Type.Object({ at: dateTime('2026-11-20T10:00:00.000Z'), ...Counts })),
  },
  { title: 'WebhookEndpointStatistics' },
);

const docs = documented({
  operationId: 'getWebhookEndpointStatistics',
  summary: 'Statistics of a webhook endpoint',
  description: 'Attempts per minute or hour, 1,440 steps at most, and what waits. Test events do not count.',
  tag: 'Webhook endpoints',
  answers: { 200: { description: 'The steps in which there were attempts.' } },
});

/** GET /api/external/webhook-endpoints/:id/statistics: attempts per minute or hour, and what waits. */
export function webhookEndpointStatistics(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...docs,
    params: IdParams,
    querystring: StatisticsQuery,
    response: { 200: Statistics },
  };
  const options = { schema, config: SCOPES.readWebhooks };
  app.get('/api/external/webhook-endpoints/:id/statistics', options, async (request) => {
    const { wabaId } = accountOf(request);
    const { interval = 'hour' } = request.query;
    const range = rangeOf(request.query, interval);
    const { id, waiting } = await endpointStatus(accounts, wabaId, accountObjectId(request.params.id));
    const steps = await readEndpointStatistics(accounts.database, wabaId, id, { interval, ...range });
    return {
      endpointId: id,
      interval,
      since: range.since.toISOString(),
      until: range.until.toISOString(),
      total: withMean(steps.reduce(add, NOTHING)),
      waiting,
      data: steps.map((step) => ({ at: step.at.toISOString(), ...withMean(step) })),
    };
  });
}

/** Whole steps; the one under way is the last unless `until` is earlier. */
function rangeOf(query: Static<typeof StatisticsQuery>, interval: 'minute' | 'hour') {
  const stepMs = STEP_MS[interval];
  const untilMs = timeOf('until', query.until)?.getTime() ?? Date.now() + 1;
  const until = new Date(Math.ceil(untilMs / stepMs) * stepMs);
  const sinceMs =
    timeOf('since', query.since)?.getTime() ?? until.getTime() - DEFAULT_STEPS[interval] * stepMs;
  const since = new Date(Math.floor(sinceMs / stepMs) * stepMs);
  const steps = (until.getTime() - since.getTime()) / stepMs;
  if (steps >= 1 && steps <= MAX_STEPS) return { since, until };
  throw new ApiError('invalid_parameter', {
    param: 'since',
    message: `The range must have 1 to ${MAX_STEPS} ${interval}s: "since" before "until".`,
  });
}

type Sums = { successes: number; failures: number; totalMs: number };

const NOTHING: Sums = { successes: 0, failures: 0, totalMs: 0 };

function add(sum: Sums, step: Sums): Sums {
  return {
    successes: sum.successes + step.successes,
    failures: sum.failures + step.failures,
    totalMs: sum.totalMs + step.totalMs,
  };
}

function withMean({ successes, failures, totalMs }: Sums) {
  const attempts = successes + failures;
  const meanDurationMs = attempts === 0 ? null : Math.round((totalMs / attempts) * 10) / 10;
  return { successes, failures, meanDurationMs };
}

/** Leaves time for the start of the workflow within the time that a request may take. */
const WAIT_MS = 8_000;

const TestOutcome = Type.Object(
  {
    endpointId: text('3'),
    id: text('evt_019aa2b37c4d7e8f9a0b1c2d3e4f5061'),
    eventId: text('test_1'),
    deliveryId: text('dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5062'),
    state: Type.Enum(['pending', 'delivered', 'failed', 'dropped']),
    statusCode: nullable(Type.Integer()),
    error: nullable(Type.String()),
    durationMs: nullable(Type.Number()),
  },
  { title: 'TestOutcome' },
);

/**
 * POST /api/external/webhook-endpoints/:id/test: sends the `test` event to this endpoint and tells what came of it;
 * 202 while nothing has, also when it could not be started yet.
 */
export function testWebhookEndpoint(app: ExternalApp, { accounts, startDelivery }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'testWebhookEndpoint',
      summary: 'Send a test event',
      description:
        'To this endpoint only, also while it is paused, once. Waits up to 8 seconds for what comes of it.',
      tag: 'Webhook endpoints',
      requests: { empty: {} },
      answers: {
        200: {
          description: 'What came of it.',
          example: { state: 'delivered', statusCode: 200, durationMs: 82.4 },
        },
        202: { description: 'Nothing yet: look at `GET /api/external/events/{id}`.' },
      },
    }),
    params: IdParams,
    querystring: NoQuery,
    body: NoBody,
    response: { 200: TestOutcome, 202: TestOutcome },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.post('/api/external/webhook-endpoints/:id/test', options, async (request, reply) => {
    const { wabaId } = accountOf(request);
    const actor = apiActorOf(request);
    const tools = { database: accounts.database, actor, startDelivery, waitMs: WAIT_MS };
    const result = await sendTestEvent(tools, wabaId, accountObjectId(request.params.id));
    const { webhookId, startError, workflowId, ...outcome } = result;
    if (startError !== null) {
      request.log.warn({ err: startError, workflowId }, 'the workflow of a test event could not be started');
    }
    reply.code(outcome.state === 'pending' ? 202 : 200);
    return { id: webhookId, ...outcome };
  });
}
