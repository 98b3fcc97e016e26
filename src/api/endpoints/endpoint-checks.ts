import { type Static, Type } from 'typebox';
import { countRuns, readEndpointStatistics } from '../../features/endpoints/endpoint-statistics.ts';
import { endpointStatus } from '../../features/endpoints/endpoints.ts';
import { sendTestEvent } from '../../features/endpoints/test-event.ts';
import { invalidParameter } from '../errors/api-error.ts';
import {
  closed,
  count,
  dateTime,
  named,
  namedClosed,
  nullable,
  optionalParameter,
  Time,
  text,
  timeOf,
} from '../external/schema-kit.ts';
import { operation, restOperation } from '../operations/operation.ts';
import { OF_ENDPOINT, Waiting, wabaOfEndpoint } from './endpoint-schemas.ts';
import { describeTestEvent } from './endpoint-text.ts';
import { SAMPLE_NAMES, sampleEvent } from './sample-events.ts';

const STEP_MS = { minute: 60_000, hour: 3_600_000 };
const DEFAULT_STEPS = { minute: 60, hour: 24 };
/** A day of minutes, two months of hours. */
const MAX_STEPS = 1_440;

const StatisticsQuery = closed({
  interval: optionalParameter(
    Type.Enum(['minute', 'hour'], { default: 'hour' }),
    'The length of a step.',
    'hour',
  ),
  since: optionalParameter(Time, 'The start of the first step.', '2026-11-20T00:00:00Z'),
  until: optionalParameter(Time, 'The end of the last step; not in it.', '2026-11-21T00:00:00Z'),
});

const Counts = {
  successes: count(1_180),
  failures: count(12),
  meanDurationMs: nullable(Type.Number(), 74.2),
};

const Statistics = named('WebhookEndpointStatistics', {
  endpointId: text('3'),
  interval: Type.Enum(['minute', 'hour'], { examples: ['hour'] }),
  since: dateTime('2026-11-20T10:00:00.000Z'),
  until: dateTime('2026-11-21T10:00:00.000Z'),
  total: Type.Object(Counts),
  waiting: Waiting,
  runs: Type.Object(
    { deliveries: count(100), withRun: count(97) },
    {
      description:
        'Of the last 100 attempted deliveries of seven days, how many had a workflow run; with `alwaysWorkflowsFor`, of the deliveries of these event types.',
    },
  ),
  data: Type.Array(Type.Object({ at: dateTime('2026-11-20T10:00:00.000Z'), ...Counts })),
});

export const webhookEndpointStatistics = restOperation({
  id: 'getWebhookEndpointStatistics',
  method: 'GET',
  path: '/api/external/webhook-endpoints/:id/statistics',
  scope: 'readWebhooks',
  summary: 'Get the statistics of a webhook endpoint',
  description:
    'Attempts per minute or hour, 1,440 steps at most, the pending deliveries, and how many of the last had a workflow run. Test events do not count.',
  ...OF_ENDPOINT,
  query: StatisticsQuery,
  answers: { 200: { description: 'The steps in which there were attempts.', schema: Statistics } },
  run: async ({ accounts, wabaId }, input) => {
    const { interval = 'hour' } = input;
    const range = rangeOf(input, interval);
    const endpoint = await endpointStatus(accounts, wabaId, input.id);
    const { id, waiting } = endpoint;
    const [steps, runs] = await Promise.all([
      readEndpointStatistics(accounts.database, wabaId, id, { interval, ...range }),
      countRuns(accounts.database, endpoint),
    ]);
    const total = withMean(steps.reduce(add, NOTHING));
    const data = steps.map((step) => ({ at: step.at, ...withMean(step) }));
    return { endpointId: id, interval, ...range, total, waiting, runs, data };
  },
});

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
  throw invalidParameter(
    'since',
    `The range must have 1 to ${MAX_STEPS} ${interval}s: "since" before "until".`,
  );
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

const TestOutcome = named('TestOutcome', {
  endpointId: text('3'),
  id: text('evt_019aa2b37c4d7e8f9a0b1c2d3e4f5061'),
  eventId: text('test_1'),
  deliveryId: text('dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5062'),
  state: Type.Enum(['pending', 'delivered', 'failed', 'dropped']),
  statusCode: nullable(Type.Integer()),
  error: nullable(Type.String()),
  durationMs: nullable(Type.Number()),
});

const TestRequest = namedClosed('TestRequest', {
  sample: optionalParameter(
    Type.Enum([...SAMPLE_NAMES]),
    'The event to send: the `test` event unless another sample is named. Samples have made-up contents, the `phoneNumberId` `TEST_PHONE_NUMBER_ID` and an `eventId` of `test_…`.',
    'image',
  ),
  eventId: optionalParameter(
    Type.String({ pattern: '^test_[1-9][0-9]{0,17}$' }),
    'The `eventId` of an earlier test, to see that both count: events may share an `eventId`, and only `webhook-id` identifies a duplicate. With `sample` only.',
    'test_1',
  ),
});

/** The outcome is pending also when the test could not be started yet. */
export const testWebhookEndpoint = operation({
  id: 'testWebhookEndpoint',
  method: 'POST',
  path: '/api/external/webhook-endpoints/:id/test',
  scope: 'manageWebhooks',
  summary: 'Send a test event',
  description:
    'To this endpoint only, once, even if it is paused. Waits up to 8 seconds for the outcome. With `sample`, an event of another type with made-up contents is sent as such events are: with retries, and when the endpoint is enabled.',
  errors: ['test_event_pending'],
  requests: { test: {}, image: { sample: 'image' } },
  ...OF_ENDPOINT,
  body: TestRequest,
  answers: {
    200: {
      description: 'The outcome.',
      schema: TestOutcome,
      example: { state: 'delivered', statusCode: 200, durationMs: 82.4 },
    },
    202: {
      description: 'There is no outcome yet: see `GET /api/external/events/{id}`.',
      schema: TestOutcome,
    },
  },
  run: ({ tools, wabaId, testEvents }, { id, sample, eventId }) =>
    sendTestEvent(
      { database: tools.database, actor: tools.actor, ...testEvents },
      wabaId,
      id,
      sampleEvent(sample ?? 'test', eventId ?? null),
    ),
  status: ({ state }) => (state === 'pending' ? 202 : 200),
  json: ({ webhookId, startError, workflowId, ...outcome }, { request }) => {
    if (startError !== null) {
      request.log.warn({ err: startError, workflowId }, 'the workflow of a test event could not be started');
    }
    return { id: webhookId, ...outcome };
  },
  command: {
    name: 'endpoint test',
    help:
      'send the test event to an endpoint, whatever its mode and filters, and wait for the response; ' +
      'the exit code is 0 when the event was stored, the outcome is in "state"',
    example: 'endpoint test 3 --json',
    waba: wabaOfEndpoint,
    argument: 'the id of the endpoint',
    options: {
      sample: {
        flags: '--sample <name>',
        help: 'send a sample of this event in place of the test event',
        showsChoices: true,
      },
      eventId: {
        flags: '--event-id <id>',
        help: 'the eventId of an earlier test; with --sample only',
      },
    },
    show: async (result, { tools, call }) => {
      const { url } = await endpointStatus(call.tools, call.wabaId, result.endpointId);
      return describeTestEvent(tools.config, url, result);
    },
  },
});
