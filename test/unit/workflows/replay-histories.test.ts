import { readdirSync, readFileSync } from 'node:fs';
import { type ReplayWorkerOptions, Worker } from '@temporalio/worker';
import { describe, expect, test } from 'vitest';
import '../../support/temporal-runtime.ts';
import { loadWorkflowBundle } from '../../../src/worker/workflow-bundle.ts';
import * as workflows from '../../../src/workflows/bundle-entry.ts';
import { historyFromJson } from '../../support/histories/history-json.ts';
import { scrubHistory } from '../../support/histories/scrub-history.ts';
import { silentLogger } from '../../support/silent-logger.ts';

const FOLDER = new URL('../../fixtures/histories/', import.meta.url);

type Recorded = { workflowId: string; history: { events: Record<string, unknown>[] } };

const files = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
const recorded = new Map<string, Recorded>(
  files.map((name) => [name, JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8'))]),
);

/** Why each history cannot be replayed by the present code; null where it can. */
async function replay(histories: ReadonlyMap<string, Recorded>): Promise<Record<string, string | null>> {
  const options: ReplayWorkerOptions = { workflowBundle: await loadWorkflowBundle(silentLogger) };
  const given = [...histories].map(([name, { history }]) => ({
    workflowId: name,
    history: historyFromJson(history),
  }));
  const results: Record<string, string | null> = {};
  for await (const { workflowId, error } of Worker.runReplayHistories(options, given)) {
    results[workflowId] = error === undefined ? null : String(error);
  }
  return results;
}

describe('recorded histories', () => {
  test('are replayed by the present code: workflows that run since an older release go on', async () => {
    const results = await replay(recorded);
    expect(results).toEqual(Object.fromEntries(files.map((name) => [name, null])));
  });

  test('are not replayed by code that does something else: the check can fail', async () => {
    const [name = '', first] = [...recorded].find(([file]) => file.startsWith('deliver-event-retried')) ?? [];
    const other = JSON.parse(JSON.stringify(first).replaceAll('"attemptDelivery"', '"somethingElse"'));
    const results = await replay(new Map([[name, other]]));
    expect(results[name]).toMatch(/nondeterminism|DeterminismViolation/i);
  });

  test('lose no decision to a new run: one that came while the row was read is dealt with first', async () => {
    const [name = '', first] =
      [...recorded].find(([file]) => file.startsWith('approve-api-key-signals')) ?? [];
    const long: Recorded = JSON.parse(JSON.stringify(first));
    const { events } = long.history;
    const decided = events.findIndex((event) => JSON.stringify(event).includes('"decideBySignal"'));
    const attributes = 'workflowTaskStartedEventAttributes';
    const started = events.slice(0, decided).findLast((event) => attributes in event)?.[attributes];
    expect(started).toBeDefined();
    Object.assign(started ?? {}, { suggestContinueAsNew: true });
    expect(await replay(new Map([[name, long]]))).toEqual({ [name]: null });
  });

  test('of an endpoint that is in trouble for long continue as new', async () => {
    const [name = '', first] = [...recorded].find(([file]) => file.startsWith('endpoint-trouble-over')) ?? [];
    const long: Recorded = JSON.parse(JSON.stringify(first));
    const { events } = long.history;
    const fired = events.findIndex((event) => 'timerFiredEventAttributes' in event);
    const end = events.findIndex(
      (event, at) => at > fired && 'workflowTaskCompletedEventAttributes' in event,
    );
    const started = events[end - 1]?.workflowTaskStartedEventAttributes;
    expect(started).toBeDefined();
    Object.assign(started ?? {}, { suggestContinueAsNew: true });
    const { eventId: workflowTaskCompletedEventId, eventTime } = events[end] ?? {};
    const renewed = {
      eventId: String(end + 2),
      eventTime,
      eventType: 'EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW',
      workflowExecutionContinuedAsNewEventAttributes: {
        newExecutionRunId: 'b1946ac9-2492-4d23-b47c-9b5a3e4c8f01',
        workflowTaskCompletedEventId,
        workflowType: { name: 'endpointTrouble' },
      },
    };
    const continued = { ...long, history: { events: [...events.slice(0, end + 1), renewed] } };
    expect(await replay(new Map([[name, continued]]))).toEqual({ [name]: null });
  });

  test('there are of every workflow', () => {
    const types = new Set([...recorded.values()].map(({ history }) => typeOf(history.events[0])));
    expect([...types].sort()).toEqual(Object.keys(workflows).sort());
  });

  test.each(files)('%s names no machine and no secret', (name) => {
    const { history } = recorded.get(name) ?? {};
    expect(scrubHistory(history)).toEqual(history);
  });
});

function typeOf(started: Record<string, unknown> | undefined): string | undefined {
  const attributes = started?.workflowExecutionStartedEventAttributes as
    | { workflowType: { name: string } }
    | undefined;
  return attributes?.workflowType.name;
}
