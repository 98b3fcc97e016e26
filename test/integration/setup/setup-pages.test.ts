import { expect, test } from 'vitest';
import { queryValue } from '../../../src/platform/postgres/sql.ts';
import { tablesHolding } from '../../support/database-scan.ts';
import { customerOf, dialogIn, goThrough, PRODUCT, passDialog, startSetupWorld } from './setup-world.ts';

/** The pages of a link up to the moment at which upstream has authorized it; what follows is a workflow. */

const UNKNOWN = 'This link is not known';

test('looking at a link, however often, uses nothing up', async () => {
  const world = await startSetupWorld();
  const link = await world.link();
  for (const method of ['GET', 'HEAD', 'GET'] as const) {
    const looked = await world.app.inject({
      method,
      url: link.path,
      headers: { 'user-agent': 'WhatsApp/2.23 A' },
    });
    expect([looked.statusCode, looked.headers['set-cookie']]).toEqual([200, undefined]);
  }
  expect(await link.now()).toMatchObject({ state: 'open' });
  const unknown = await customerOf(world).get(`/setup/open/${'x'.repeat(43)}`);
  expect([unknown.statusCode, unknown.body.includes(UNKNOWN)]).toEqual([404, true]);
});

test('the page is strict: no frame, no referrer, nothing from elsewhere, no cookie of the portal, no form of another site', async () => {
  const world = await startSetupWorld();
  const link = await world.link();
  const browser = customerOf(world);
  const page = await browser.get(link.path);
  expect(page.headers).toMatchObject({
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    'x-frame-options': 'DENY',
    'content-security-policy': expect.stringMatching(
      /default-src 'none'.*script-src 'self'.*frame-ancestors 'none'/,
    ),
  });
  expect([...page.body.matchAll(/(?:src|href)="(https?:[^"]*)"/g)]).toEqual([]);
  for (const headers of [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': undefined, origin: 'https://evil.example' },
  ]) {
    expect((await browser.post(link.path, '', headers)).statusCode).toBe(403);
  }
  expect(await link.now()).toMatchObject({ state: 'open' });
  const begun = await browser.post(link.path);
  const [cookie, ...more] = begun.cookies;
  expect(more).toEqual([]);
  expect(cookie).toMatchObject({ path: '/setup', secure: true, httpOnly: true, sameSite: 'Lax' });
  expect(cookie?.name).toBe(`__Secure-heliograph-setup-${link.id.slice(3)}`);
});

test('the code is exchanged in the request that brings it, and the token is in no log and in no row', async () => {
  const world = await startSetupWorld();
  const link = await world.link();
  const browser = customerOf(world);
  const { begun, back, next } = await goThrough(browser, link.path, 'finish');
  expect(begun.headers.refresh).toMatch(/^0; url=http:\/\/127\.0\.0\.1:\d+\/v26\.0\/dialog\/oauth\?/);
  expect(next).toBe(`/setup/links/${link.id}`);
  expect(await link.now()).toMatchObject({ state: 'authorized' });
  const page = await browser.get(next);
  expect([page.statusCode, page.headers.refresh]).toEqual([200, '3']);
  expect(page.body).toContain('Your number is being connected');
  const code = new URLSearchParams(back).get('code') ?? 'none';
  const secrets = [link.path.split('/').at(-1) ?? 'none', code];
  expect(await tablesHolding(world.database, secrets)).toEqual([]);
  const sealed = await queryValue<string>(world.database, 'select token_sealed from setup_links', {});
  expect(sealed).toMatch(/^(?!EAA).{40}/);
  for (const secret of [...secrets, 'EAA', 'test-app-secret'])
    expect(world.lines.filter((line) => line.includes(secret))).toEqual([]);
  expect(world.lines.length).toBeGreaterThan(0);
});

test('the same return a second time changes nothing', async () => {
  const world = await startSetupWorld();
  const link = await world.link();
  const browser = customerOf(world);
  const { back, next } = await goThrough(browser, link.path, 'finish');
  const again = await browser.get(back);
  expect([again.statusCode, again.headers.location]).toEqual([303, next]);
  expect(await link.now()).toMatchObject({ state: 'authorized', failure: null });
});

test('a return that is made up, or comes to another browser, is of no link', async () => {
  const world = await startSetupWorld();
  const link = await world.link();
  const [browser, other] = [customerOf(world), customerOf(world)];
  const begun = await browser.post(link.path);
  const back = await passDialog(dialogIn(begun.body), 'finish');
  const state = new URLSearchParams(back.slice(back.indexOf('?'))).get('state') ?? '';
  const forged = back.replace(encodeURIComponent(state), encodeURIComponent(`${state.slice(0, -2)}AA`));
  expect(forged).not.toBe(back);
  for (const [who, path] of [
    [other, back],
    [browser, forged],
    [browser, '/setup/callback?code=AQx'],
    [browser, '/setup/callback'],
  ] as const) {
    const answer = await who.get(path);
    expect([answer.statusCode, answer.body.includes(UNKNOWN)]).toEqual([404, true]);
  }
  expect((await world.app.inject({ method: 'HEAD', url: back })).statusCode).toBe(405);
  expect(await link.now()).toMatchObject({ state: 'started' });
  expect((await browser.get(back)).statusCode).toBe(303);
  expect(await link.now()).toMatchObject({ state: 'authorized' });
});

test('of two browsers the one that upstream has authorized has the link', async () => {
  const world = await startSetupWorld();
  const link = await world.link();
  const [first, second] = [customerOf(world), customerOf(world)];
  const begun = await first.post(link.path);
  const { next } = await goThrough(second, link.path, 'finish');
  const late = await first.get(await passDialog(dialogIn(begun.body), 'finish'));
  expect([late.statusCode, late.headers.location]).toEqual([303, next]);
  const seen = await first.get(link.path);
  expect([seen.statusCode, seen.body.includes('This link was used in another browser')]).toEqual([410, true]);
  expect((await first.get(next)).statusCode).toBe(404);
  expect((await first.post(`${next}/retry`)).statusCode).not.toBe(303);
  expect((await second.get(next)).statusCode).toBe(200);
});

test.each([
  ['cancel', 'cancelled', 'login_cancelled'],
  ['cancel_at_step', 'cancelled', 'flow_abandoned'],
  ['error', 'failed', 'upstream_error'],
] as const)(
  'after %s the page has advice, and the customer begins again on it',
  async (outcome, state, code) => {
    const world = await startSetupWorld();
    const link = await world.link({ state: 'u_17' });
    const browser = customerOf(world);
    const { next } = await goThrough(browser, link.path, outcome);
    expect(await link.now()).toMatchObject({ state, failure: { code } });
    const page = await browser.get(next);
    expect(page.body).toContain(`<code>${code}</code>`);
    const [, way = ''] = /href="(https:\/\/crm\.example[^"]*)"/.exec(page.body) ?? [];
    const { origin, searchParams } = new URL(way.replaceAll('&amp;', '&'));
    expect([origin, searchParams.get('code'), searchParams.get('state')]).toEqual([PRODUCT, code, 'u_17']);
    const again = await browser.post(`${next}/start`);
    const returned = await browser.get(await passDialog(dialogIn(again.body), 'finish'));
    expect(returned.headers.location).toBe(next);
    expect(await link.now()).toMatchObject({ state: 'authorized', failure: null });
  },
);

test('a code that comes after 30 seconds, and one whose exchange fails, end in a failure that can be repeated', async () => {
  const world = await startSetupWorld();
  const link = await world.link();
  const browser = customerOf(world);
  const begun = await browser.post(link.path);
  const back = await passDialog(dialogIn(begun.body), 'finish');
  world.clock.aheadMs += 31_000;
  const { location: next } = (await browser.get(back)).headers;
  expect(await link.now()).toMatchObject({
    state: 'failed',
    failure: { code: 'code_expired', retryable: true },
  });
  await world.addFault({ match: 'code_exchange', kind: 'status', status: 503, times: 1 });
  const again = await browser.post(`${next}/start`);
  await browser.get(await passDialog(dialogIn(again.body), 'finish'));
  expect(await link.now()).toMatchObject({ state: 'failed', failure: { code: 'upstream_error' } });
});

test('a link that was revoked, or whose time has passed, is over', async () => {
  const world = await startSetupWorld();
  const revoked = await world.link();
  await world.ask('DELETE', `/tenants/${revoked.tenant}/setup-links/${revoked.id}`);
  const expired = await world.link();
  await world.database.raw('update setup_links set expires_at = now() where id = :id', {
    id: expired.id.slice(3),
  });
  const browser = customerOf(world);
  for (const [link, title] of [
    [revoked, 'This link was revoked'],
    [expired, 'This link has expired'],
  ] as const) {
    for (const answer of [await browser.get(link.path), await browser.post(link.path)]) {
      expect([answer.statusCode, answer.body.includes(title), answer.body.includes('<form')]).toEqual([
        410,
        true,
        false,
      ]);
    }
  }
});

test('without an app the customer enters a token, which upstream must accept', async () => {
  const world = await startSetupWorld();
  const link = await world.link({ mode: 'steps' });
  const browser = customerOf(world);
  const begun = await browser.post(link.path);
  expect([begun.statusCode, begun.headers.location]).toEqual([303, `/setup/links/${link.id}`]);
  const path = `/setup/links/${link.id}`;
  const given = { wabaId: '900000000000202', accessToken: 'EAA-pasted' };
  for (const [wrong, problem] of [
    [{ ...given, wabaId: 'abc' }, 'wabaId-problem'],
    [{ ...given, accessToken: '' }, 'accessToken-problem'],
    [{ ...given, wabaId: '900000000000999' }, 'accessToken-problem'],
  ] as const) {
    const answer = await browser.post(`${path}/token`, wrong);
    expect([answer.statusCode, answer.body.includes(problem), answer.body.includes('EAA-pasted')]).toEqual([
      422,
      true,
      false,
    ]);
  }
  expect((await browser.post(`${path}/token`, given)).statusCode).toBe(303);
  expect(await link.now()).toMatchObject({ state: 'authorized' });
  expect(
    await queryValue(
      world.database,
      "select count(*)::integer from setup_links l where l::text like '%EAA-pasted%'",
      {},
    ),
  ).toBe(0);
});
