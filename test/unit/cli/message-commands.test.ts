import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { directory, runFor } from './run-cli.ts';

describe('scheduled messages', () => {
  const message = {
    ...{
      serviceMessageId: '4711',
      conversationId: '42',
      phoneNumberId: '1',
      type: 'text',
      state: 'scheduled',
    },
    ...{ sendAt: '2026-12-01T08:00:00.000Z', notAfter: null, createdAt: '2026-11-20T10:00:00.000Z' },
    message: { to: '+12025550143' },
  };
  const path = '/api/external/messages';

  test('are listed, moved and cancelled', async () => {
    const listed = await runFor(['scheduled', '--number', '1'], {
      [path]: { data: [message], hasMore: false, nextCursor: null },
    });
    expect([listed.exitCode, listed.stdout]).toEqual([
      0,
      expect.stringMatching(/4711 +2026-12-01T08:00:00.000Z +scheduled +1 +\+12025550143 +text/),
    ]);
    const moved = await runFor(['move-scheduled', '4711', '--at', '2026-12-01T10:00:00+01:00'], {
      [`${path}/4711`]: message,
    });
    expect([moved.exitCode, moved.bodies[`${path}/4711`]]).toEqual([
      0,
      { sendAt: '2026-12-01T10:00:00+01:00' },
    ]);
    const cancelled = await runFor(['cancel-scheduled', '4711'], {
      [`${path}/4711/cancel`]: { ...message, state: 'cancelled' },
    });
    expect([cancelled.exitCode, cancelled.stdout]).toEqual([0, expect.stringContaining('cancelled')]);
  });

  test('are sent with a time', async () => {
    const sent = await runFor(
      ['send', '--to', '+12025550143', '--text', 'Hi', '--from', '1', '--at', '2026-12-01T09:00:00+01:00'],
      { [path]: { ...message, metaMessageId: null } },
    );
    expect(sent.bodies[path]).toMatchObject({ sendAt: '2026-12-01T09:00:00+01:00' });
    expect(sent.stdout).toMatch(/sendAt +2026-12-01T08:00:00.000Z/);
  });
});

test('broadcasts are listed, shown with their counts, and paused', async () => {
  const path = '/api/external/broadcasts';
  const one = {
    id: '12',
    name: 'Sale',
    state: 'running',
    recipients: 200,
    pending: 100,
    pausedBecause: null,
  };
  const broadcast = { ...one, createdAt: '2026-11-20T10:00:00.000Z', sendAt: null, finishedAt: null };
  const counts = { pending: 100, queued: 0, accepted: 98, failed: 2, failedByCode: { 131026: 2 } };
  const listed = await runFor(['broadcasts'], {
    [path]: { data: [broadcast], hasMore: false, nextCursor: null },
  });
  expect(listed.stdout).toMatch(/12 +2026-11-20T10:00:00.000Z +running +100 of 200 +Sale/);
  const shown = await runFor(['broadcasts', '12'], { [`${path}/12`]: { ...broadcast, counts } });
  expect(shown.stdout).toMatch(/settled +\[#{10}\.{10}\] 100\/200/);
  expect(shown.stdout).toMatch(/failures +131026: 2/);
  const paused = await runFor(['broadcast', '12', 'pause'], {
    [`${path}/12/pause`]: { ...broadcast, state: 'paused', counts },
  });
  expect([paused.exitCode, paused.stdout]).toEqual([0, expect.stringMatching(/state +paused/)]);
  expect((await runFor(['broadcast', '12', 'stop'], {})).exitCode).toBe(2);
});

describe('broadcasts from a file', () => {
  const path = '/api/external/broadcasts';
  const counts = { pending: 0, queued: 0, failedByCode: {} };
  const draft = { id: '12', name: 'Sale', state: 'draft', recipients: 0, pausedBecause: null, counts };
  const create = [
    'create-broadcast',
    ...['--name', 'Sale', '--from', '1', '--template', 'winter_sale', '--language', 'en_US'],
  ];
  const fileOf = (text: string | Buffer) => {
    const file = join(directory(), 'customers.csv');
    writeFileSync(file, text);
    return `@${file}`;
  };

  test('are created with their recipients; each wrong line is named', async () => {
    const lines = [
      { result: 'added' },
      { result: 'invalid', param: 'recipients/1/to', message: 'No number.' },
    ];
    const made = await runFor(
      [...create, '--recipients', fileOf('\ufeffto;1\r\n+12025550143;Asha\r\n\r\nnobody;Ben\r\n=1;Eve\r\n')],
      { [path]: draft, [`${path}/12/recipients`]: { added: 1, duplicate: 0, invalid: 1, lines } },
    );
    expect(made.bodies[path]).toEqual({
      name: 'Sale',
      phoneNumberId: '1',
      template: { name: 'winter_sale', language: { code: 'en_US' } },
    });
    expect(made.bodies[`${path}/12/recipients`]).toEqual({
      recipients: [
        { to: '+12025550143', parameters: ['Asha'] },
        { to: 'nobody', parameters: ['Ben'] },
      ],
    });
    expect([made.exitCode, made.stderr]).toEqual([1, expect.stringContaining('Broadcast 12 is created.')]);
    expect(made.stdout).toMatch(/4 +No number\.\n5 +The cell of "to" is a formula/);
    expect(made.stdout).toContain('1 added, 0 were there already, 2 not added.');
  });

  test('get components and a time', async () => {
    const components = [{ type: 'header', parameters: [{ type: 'text', text: 'Asha' }] }];
    const at = '2026-12-01T09:00:00+01:00';
    const made = await runFor([...create, '--components', JSON.stringify(components), '--at', at], {
      [path]: draft,
    });
    expect(made.bodies[path]).toMatchObject({ template: { components }, sendAt: at });
    expect([made.exitCode, made.stdout]).toEqual([0, expect.stringMatching(/state +draft/)]);
  });

  test('go in pages of 1,000', async () => {
    const numbers = Array.from({ length: 2_001 }, (_, n) => `1202${5_550_000 + n}`).join('\n');
    const added = await runFor(['add-recipients', '12', '--recipients', fileOf(numbers)], {
      [`${path}/12/recipients`]: { added: 1, duplicate: 2, invalid: 0, lines: [] },
    });
    expect(added.texts.map((body) => JSON.parse(body).recipients.length)).toEqual([1_000, 1_000, 1]);
    expect([added.exitCode, added.stdout]).toEqual([0, '3 added, 6 were there already, 0 not added.\n']);
  });

  test.for([
    [[...create.slice(0, 3)], 'Say --template too.'],
    [[...create, '--components', '{'], '--components is no JSON'],
    [['add-recipients', '12'], 'Say --recipients @file'],
    [['add-recipients', '12', '--recipients', 'phone,name'], 'Line 1 has several columns'],
    [[...create, '--recipients', ''], 'There is no recipient.'],
  ] as const)('wrong command lines send nothing: %j', async ([args, message]) => {
    const { exitCode, stderr, texts } = await runFor(args, {});
    expect([exitCode, stderr, texts]).toEqual([2, expect.stringContaining(message), []]);
  });

  test('a file that is no UTF-8 is refused', async () => {
    const given = fileOf(Buffer.from('to;1\n12025550143;Jos\u00e9', 'latin1'));
    const { exitCode, stderr } = await runFor(['add-recipients', '12', '--recipients', given], {});
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('no UTF-8')]);
  });
});

test('usage shows the counts by day and group with the costs that upstream reports', async () => {
  const counts = { sent: 3, delivered: 2, read: 1, failed: 1, billable: 2, received: 0 };
  const cost = {
    amount: '0.02',
    currency: 'USD',
    volume: 2,
    source: 'upstream',
    reportedAt: '2026-11-21T03:00:00.000Z',
  };
  const rows = [
    { day: '2026-11-20', country: 'DE', ...counts, cost },
    { day: '2026-11-21', country: null, ...counts, cost: null },
  ];
  const path = '/api/external/usage/messages';
  const shown = await runFor(['usage', '--from', '2026-11-20', '--by', 'country'], {
    [path]: { asOf: null, isFinal: false, rows },
  });
  expect([shown.exitCode, ...shown.urls]).toEqual([0, `${path}?from=2026-11-20&groupBy=country`]);
  expect(shown.stdout).toMatch(/2026-11-20 +DE +3 +2 +1 +1 +2 +0 +0\.02 USD\n2026-11-21 +not reported +3/);
  expect(shown.stderr).toContain('can still change');
});

test('usage by a group that there is not is no count without groups', async () => {
  const shown = await runFor(['usage', '--by', 'moon'], {});
  expect([shown.exitCode, ...shown.urls]).toEqual([2]);
  expect(shown.stderr).toBe('--by takes number, category, type, country, not "moon".\n');
});

test('message templates are listed as the options narrow them, copied from upstream first on request', async () => {
  const template = {
    ...{ id: '1', name: 'order_ready', language: 'en_US', status: 'PAUSED', category: 'UTILITY' },
    ...{
      quality: 'RED',
      rejectedReason: 'LOW_QUALITY',
      components: null,
      updatedAt: '2026-11-20T10:00:00.000Z',
    },
  };
  const path = '/api/external/message-templates';
  const { exitCode, urls, stdout, stderr } = await runFor(
    ['templates', '--status', 'PAUSED', '--name', 'order_ready', '--refresh', '--limit', '1'],
    { [path]: { data: [template], hasMore: true, nextCursor: 'next' } },
  );
  expect([exitCode, ...urls]).toEqual([0, `${path}?name=order_ready&status=PAUSED&refresh=true&limit=1`]);
  expect(stdout).toMatch(/order_ready +en_US +PAUSED +UTILITY +RED +LOW_QUALITY/);
  expect(stderr).toContain('There are more');
});

describe('opt-outs', () => {
  const optOut = {
    id: '12',
    customer: { waId: '12025550143', userId: null, name: 'Asha', username: null },
    phoneNumberId: null,
    ...{ scope: 'marketing', source: 'api', since: '2026-11-20T10:00:00.000Z', reason: 'asked by phone' },
  };

  test('are listed as the options narrow them', async () => {
    const path = '/api/external/opt-outs/search';
    const { exitCode, bodies, stdout, stderr } = await runFor(
      ['opt-outs', '--source', 'api', '--customer', '+12025550143', '--number', '1', '--limit', '1'],
      { [path]: { data: [optOut], hasMore: true, nextCursor: 'next' } },
    );
    const asked = { source: 'api', customer: '+12025550143', phoneNumberId: '1', limit: 1 };
    expect([exitCode, bodies[path]]).toEqual([0, asked]);
    expect(stdout).toMatch(
      /12025550143 +Asha +all +marketing +api +2026-11-20T10:00:00.000Z +asked by phone/,
    );
    expect(stderr).toContain('There are more');
  });

  test('are noted, and end with evidence; what upstream reported is shown as left', async () => {
    const noted = await runFor(['opt-out', '+12025550143', '--scope', 'all', '--reason', 'called'], {
      '/api/external/opt-outs': optOut,
    });
    const given = { customer: '+12025550143', scope: 'all', reason: 'called' };
    expect([noted.exitCode, noted.bodies['/api/external/opt-outs']]).toEqual([0, given]);
    const left = [{ ...optOut, source: 'upstream' }];
    const ended = await runFor(['end-opt-out', '+12025550143', '--evidence', 'signed form'], {
      '/api/external/opt-outs/end': { ended: 1, left },
    });
    const evidence = { customer: '+12025550143', evidence: 'signed form' };
    expect([ended.exitCode, ended.bodies['/api/external/opt-outs/end']]).toEqual([0, evidence]);
    expect(ended.stdout).toMatch(/Ended: 1\.[\s\S]*still hold[\s\S]*upstream/);
  });

  test('have words, which are shown, or set as lists', async () => {
    const path = '/api/external/opt-outs/words';
    const words = { optOutWords: ['STOP'], optInWords: [] };
    const shown = await runFor(['opt-out-words'], { [path]: words });
    expect([shown.exitCode, shown.stdout]).toEqual([0, 'Opt out: STOP\nOpt in: none\n']);
    const set = await runFor(['opt-out-words', '--opt-out', 'STOP, BAJA', '--opt-in', ''], { [path]: words });
    expect([set.exitCode, set.bodies[path]]).toEqual([0, { optOutWords: ['STOP', 'BAJA'], optInWords: [] }]);
  });

  test.each([
    [['opt-out', '1'], /--scope is missing/],
    [['end-opt-out', '1'], /--evidence is missing/],
    [['opt-out', '--scope', 'all'], /Usage: heliograph opt-out <customer>/],
  ])('%j asks for what is missing', async (args, words) => {
    const { exitCode, stderr } = await runFor(args, {});
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(words)]);
  });
});
