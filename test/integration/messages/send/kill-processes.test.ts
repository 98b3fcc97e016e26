import { describe, expect, onTestFinished, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { type ApiProcess, startApiProcess } from '../../../support/application-process.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../../support/worker-process.ts';
import { NUMBER, startSendingBase, textTo } from './sending-stack.ts';

const TIMEOUTS = { HELIOGRAPH_SEND_TIMEOUT_MS: '2000' };

type Base = Awaited<ReturnType<typeof startSendingBase>>;

async function post(api: ApiProcess, base: Base, body: unknown, key: string) {
  const response = await fetch(`${api.url}/api/external/messages`, {
    method: 'POST',
    headers: {
      authorization: base.authorization,
      'content-type': 'application/json',
      'idempotency-key': key,
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, string> };
}

const states = (base: Base) =>
  query<{ messageId: string; state: string; attempts: number }>(
    base.database,
    'select message_id as "messageId", state, attempts from outbound_messages order by message_id',
  );

describe('kill -9', () => {
  test('of the API after it took a message loses nothing; the repeated request gets its outcome', async () => {
    const base = await startSendingBase(TIMEOUTS);
    onTestFinished(() => base.close());
    // Without Temporal in reach of the API, so that only the task in the database is left.
    const away = { ...base.settings, HELIOGRAPH_TEMPORAL_ADDRESS: '127.0.0.1:1' };
    const body = { phoneNumberId: NUMBER, ...textTo() };
    const first = await startApiProcess(away);
    onTestFinished(() => first.kill());
    const cut = post(first, base, body, 'killed').catch(() => null);
    await eventually('the message is stored', async () => (await states(base)).length, { is: 1 });
    await first.kill();
    expect(await cut).toBeNull();
    const worker = startWorkerProcess(base.settings);
    onTestFinished(() => worker.kill());
    const api = await startApiProcess(base.settings);
    onTestFinished(() => api.kill());
    await worker.ready();
    let answer = await post(api, base, body, 'killed');
    const deadline = performance.now() + 40_000;
    while (answer.status === 409 && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      answer = await post(api, base, body, 'killed');
    }
    expect(answer).toMatchObject({ status: 200, body: { state: 'accepted' } });
    expect(await states(base)).toHaveLength(1);
    expect(await base.sendRequests()).toHaveLength(1);
  });

  test('of workers in the middle of calls never sends twice: what is uncertain is unknown', async () => {
    const base = await startSendingBase(TIMEOUTS);
    onTestFinished(() => base.close());
    await base.addFault({ match: 'send', kind: 'slow', delayMs: 400, accepted: true });
    const api = await startApiProcess(base.settings);
    onTestFinished(() => api.kill());
    let worker = startWorkerProcess(base.settings);
    onTestFinished(() => worker.kill());
    await worker.ready();
    const replies: Promise<unknown>[] = [];
    for (let round = 0; round < 3; round += 1) {
      for (let n = 0; n < 8; n += 1)
        replies.push(post(api, base, { phoneNumberId: NUMBER, ...textTo() }, `round-${round}-${n}`));
      await eventually(
        'calls are under way',
        async () => (await states(base)).filter(({ state }) => state === 'sending').length >= 3,
      );
      await worker.kill();
      worker = startWorkerProcess(base.settings);
      await worker.ready();
    }
    await Promise.all(replies);
    await eventually('every message has an outcome', async () =>
      (await states(base)).every(({ state }) => ['accepted', 'unknown'].includes(state)),
    );
    const sent = await base.sent();
    const marks = sent.map(({ body }) => (body as Record<string, string>).biz_opaque_callback_data);
    expect(new Set(marks).size).toBe(marks.length);
    const outcomes = await states(base);
    expect(outcomes).toHaveLength(24);
    expect(outcomes.every(({ attempts }) => attempts === 1)).toBe(true);
    // Upstream took all that is accepted; what is unknown it may have taken.
    const accepted = outcomes.filter(({ state }) => state === 'accepted');
    for (const { messageId } of accepted) expect(marks).toContain(`heliograph:${messageId}`);
    expect(outcomes.filter(({ state }) => state === 'unknown').length).toBeGreaterThanOrEqual(3);
    // At three in the morning workers look at all numbers.
    const tasks = `select workflow_id from workflow_tasks where workflow_type <> 'refreshNumbers'`;
    expect(await query(base.database, tasks)).toEqual([]);
  });
});
