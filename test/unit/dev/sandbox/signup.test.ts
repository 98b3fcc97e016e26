import { describe, expect, test } from 'vitest';
import { APP } from '../../../../dev/sandbox/graph/app-subscriptions.ts';
import { SET_PIN, SIGNUP_OUTCOMES } from '../../../../dev/sandbox/signup-register.ts';
import { APP_SECRET, call, graph, type JsonResponse, postJson, startSandbox } from './sandbox-harness.ts';

const RETURN_TO = 'https://gateway.example/setup/callback';
const APP_TOKEN = { authorization: `Bearer ${APP.id}|${APP_SECRET}` };
const SECONDS = 1_000;
const HOURS = 3_600 * SECONDS;

/** A sandbox with a clock, in which a customer goes through the dialog. */
async function world(config: Parameters<typeof startSandbox>[0] = {}) {
  const clock = { ms: 1_790_000_000_000 };
  const { url, ingress } = await startSandbox({ now: () => clock.ms, ...config });
  const api = `${url}/v26.0`;
  const dialogUrl = (changes: Record<string, string> = {}) => {
    const query = {
      client_id: APP.id,
      config_id: '990000000000001',
      response_type: 'code',
      override_default_response_type: 'true',
      redirect_uri: RETURN_TO,
      state: 's=1&x',
      ...changes,
    };
    return `${api}/dialog/oauth?${new URLSearchParams(query)}`;
  };
  const finish = async (outcome: string, wabaId = '') => {
    const body = new URLSearchParams({ outcome, wabaId });
    const response = await call(dialogUrl(), { method: 'POST', body, redirect: 'manual' });
    const location = response.headers.get('location');
    return { status: response.status, returned: new URL(location ?? 'none:') };
  };
  const exchange = (code: string | null, changes: Record<string, string> = {}) => {
    const query = { client_id: APP.id, client_secret: APP_SECRET, redirect_uri: RETURN_TO, ...changes };
    return call(`${api}/oauth/access_token?${new URLSearchParams({ ...query, code: code ?? '' })}`);
  };
  const connect = async (outcome: string, wabaId?: string) => {
    const { returned } = await finish(outcome, wabaId);
    const { access_token: token } = await (await exchange(returned.searchParams.get('code'))).json();
    const { data } = await (
      await graph(`${api}/debug_token?input_token=${token}`, { headers: APP_TOKEN })
    ).json();
    const wabaIds: string[] = data.granular_scopes?.[0].target_ids ?? [];
    const numbers = await Promise.all(
      wabaIds.map(async (id) => (await (await graph(`${api}/${id}/phone_numbers`)).json()).data),
    );
    return { token: String(token), scopes: data.scopes, wabaIds, numbers: numbers.flat() };
  };
  const fault = (match: string) =>
    postJson(`${url}/sandbox/faults`, { match, kind: 'status', status: 503, times: 1 });
  return { url, api, ingress, clock, dialogUrl, finish, exchange, connect, fault };
}

const codeOf = async (response: JsonResponse) => {
  const { error } = await response.json();
  return error === undefined ? response.status : (error.error_subcode ?? error.code);
};

describe('the dialog', () => {
  test('is a page with every outcome, and refuses what upstream refuses', async () => {
    const { dialogUrl } = await world();
    const response = await fetch(dialogUrl());
    const page = await response.text();
    expect(response.status).toBe(200);
    for (const name of Object.keys(SIGNUP_OUTCOMES)) expect(page).toContain(`value="${name}"`);
    const wrong = [
      { client_id: '1' },
      { config_id: '' },
      { response_type: 'token' },
      { redirect_uri: 'javascript:1' },
    ];
    for (const change of wrong) expect((await fetch(dialogUrl(change))).status).toBe(400);
  });

  test.each(['cancel', 'cancel_at_step', 'error'])(
    'returns no code after %s, but the state',
    async (outcome) => {
      const { finish, ingress } = await world();
      const { status, returned } = await finish(outcome);
      expect([status, returned.origin + returned.pathname]).toEqual([303, RETURN_TO]);
      const { state, code, ...more } = Object.fromEntries(returned.searchParams);
      expect({ state, code }).toEqual({ state: 's=1&x', code: undefined });
      expect(more).toMatchObject(
        outcome === 'error' ? { error_code: '1349187' } : { error: 'access_denied' },
      );
      expect(more.current_step).toBe(outcome === 'cancel_at_step' ? 'PHONE_NUMBER_SETUP' : undefined);
      expect(ingress.webhooks).toHaveLength(0);
    },
  );

  test('reports the partner of a finished WABA by webhook', async () => {
    const { connect, ingress } = await world();
    const { wabaIds } = await connect('two_wabas');
    const values = ingress.webhooks.map(({ bytes }) => {
      const [change] = JSON.parse(bytes.toString()).entry[0].changes;
      return [change.field, change.value.event, change.value.waba_info.waba_id];
    });
    expect(values).toEqual(wabaIds.map((id) => ['account_update', 'PARTNER_ADDED', id]));
  });

  test('goes on when the app cannot be reached', async () => {
    const { finish } = await world({ ingressUrl: 'http://127.0.0.1:9' });
    expect((await finish('finish')).returned.searchParams.get('code')).toMatch(/^AQ/);
  });
});

describe('a code', () => {
  test('gives a token once, within 30 seconds, to the app and the address that it was made for', async () => {
    const { finish, exchange, clock } = await world();
    const code = (await finish('finish')).returned.searchParams.get('code');
    expect(await codeOf(await exchange('AQ-other'))).toBe(36_007);
    expect(await codeOf(await exchange(code, { client_secret: 'wrong' }))).toBe(1);
    expect(await codeOf(await exchange(code, { redirect_uri: `${RETURN_TO}/` }))).toBe(36_008);
    clock.ms += 30 * SECONDS;
    expect(await (await exchange(code)).json()).toEqual({
      access_token: expect.stringMatching(/^EAA/),
      token_type: 'bearer',
    });
    expect(await codeOf(await exchange(code))).toBe(36_009);
    const late = (await finish('finish')).returned.searchParams.get('code');
    clock.ms += 31 * SECONDS;
    expect(await codeOf(await exchange(late))).toBe(36_007);
  });

  test('makes a token that is accepted beside the given one', async () => {
    const { connect, api } = await world({ accessToken: 'the-only-one' });
    const { token } = await connect('only_waba');
    const ask = (bearer: string) =>
      call(`${api}/800000000000111`, { headers: { authorization: `Bearer ${bearer}` } });
    expect([(await ask(token)).status, (await ask('another')).status]).toEqual([200, 401]);
  });
});

describe('the token of', () => {
  test.each([
    ['finish', 1, 1, [{ status: 'PENDING', name_status: 'APPROVED', is_pin_enabled: false }]],
    ['in_review', 1, 1, [{ status: 'PENDING', name_status: 'PENDING_REVIEW' }]],
    ['pin_set', 1, 1, [{ status: 'PENDING', is_pin_enabled: true }]],
    ['two_wabas', 2, 1, [{ status: 'PENDING' }, { status: 'PENDING' }]],
    ['only_waba', 1, 1, []],
    ['coexistence', 1, 1, [{ status: 'CONNECTED', is_on_biz_app: true }]],
    ['no_permission', 1, 0, [{ status: 'PENDING' }]],
    ['no_waba', 0, 1, []],
  ])('%s is for %i WABAs', async (outcome, wabas, messaging, numbers) => {
    const { connect } = await world();
    const connected = await connect(outcome);
    expect(connected.wabaIds).toHaveLength(wabas);
    expect(connected.scopes.includes('whatsapp_business_messaging')).toBe(messaging === 1);
    expect(connected.numbers).toHaveLength(numbers.length);
    expect(connected.numbers).toMatchObject(numbers);
    expect(JSON.stringify(connected.numbers)).not.toContain(SET_PIN);
  });

  test('a WABA that was handed over names that one', async () => {
    const { connect } = await world();
    expect((await connect('finish', '900000000000202')).wabaIds).toEqual(['900000000000202']);
  });

  test('another app is not explained', async () => {
    const { connect, api } = await world();
    const { token } = await connect('finish');
    const { data } = await (await graph(`${api}/debug_token?input_token=${token}`)).json();
    expect(data.is_valid).toBe(false);
  });
});

test('a callback of its own is possible only for a WABA that is subscribed', async () => {
  const { connect, api } = await world();
  const [wabaId = ''] = (await connect('finish')).wabaIds;
  const apps = `${api}/${wabaId}/subscribed_apps`;
  const override = { override_callback_uri: 'https://own.example/hook', verify_token: 'v' };
  const subscribed = async () => (await (await graph(apps)).json()).data;
  expect(await subscribed()).toEqual([]);
  const refused = await postJson(apps, override);
  expect([refused.status, (await refused.json()).error.message]).toEqual([
    400,
    expect.stringContaining('(#100) Before override the current callback uri'),
  ]);
  expect((await postJson(apps, {})).status).toBe(200);
  expect((await postJson(apps, override)).status).toBe(200);
  expect(await subscribed()).toMatchObject([{ override_callback_uri: override.override_callback_uri }]);
  expect((await graph(apps, { method: 'DELETE' })).status).toBe(200);
  expect(await subscribed()).toEqual([]);
});

describe('a number', () => {
  const registerAt = (api: string, id: string, pin: unknown) =>
    postJson(`${api}/${id}/register`, { messaging_product: 'whatsapp', pin });

  test('is registered with a PIN, and later only with the same', async () => {
    const { connect, api } = await world();
    const [{ id }] = (await connect('finish')).numbers;
    expect(await codeOf(await registerAt(api, id, '12345'))).toBe(100);
    expect(await codeOf(await registerAt(api, id, '123456'))).toBe(200);
    expect(await codeOf(await registerAt(api, id, '654321'))).toBe(133_005);
    const phone = await (await graph(`${api}/${id}?fields=status,is_pin_enabled,platform_type`)).json();
    expect(phone).toEqual({ id, status: 'CONNECTED', is_pin_enabled: true, platform_type: 'CLOUD_API' });
  });

  test('with a PIN set takes that PIN, and ten attempts in 72 hours', async () => {
    const { connect, api, clock } = await world();
    const [{ id }] = (await connect('pin_set')).numbers;
    for (let attempt = 0; attempt < 10; attempt += 1) {
      expect(await codeOf(await registerAt(api, id, '000000'))).toBe(133_005);
    }
    expect(await codeOf(await registerAt(api, id, SET_PIN))).toBe(133_016);
    clock.ms += 72 * HOURS;
    expect(await codeOf(await registerAt(api, id, SET_PIN))).toBe(200);
  });

  test('of the app is not registered, but gives its data once within a day', async () => {
    const { connect, api, clock } = await world();
    const [{ id }] = (await connect('coexistence')).numbers;
    const sync = (type: string) =>
      postJson(`${api}/${id}/smb_app_data`, { messaging_product: 'whatsapp', sync_type: type });
    expect(await codeOf(await registerAt(api, id, '123456'))).toBe(100);
    expect(await (await sync('smb_app_state_sync')).json()).toMatchObject({ request_id: expect.any(String) });
    expect([await codeOf(await sync('smb_app_state_sync')), await codeOf(await sync('all'))]).toEqual([
      2_593_107, 100,
    ]);
    clock.ms += 25 * HOURS;
    expect(await codeOf(await sync('history'))).toBe(2_593_108);
  });
});

test('each call fails once when it is told to', async () => {
  const { connect, finish, exchange, api, fault } = await world();
  const { wabaIds, numbers, token } = await connect('finish');
  const [wabaId = ''] = wabaIds;
  const [{ id }] = numbers;
  const [app] = (await connect('coexistence')).numbers;
  const calls: [string, () => Promise<JsonResponse>][] = [
    ['code_exchange', async () => await exchange((await finish('finish')).returned.searchParams.get('code'))],
    ['token_debug', () => graph(`${api}/debug_token?input_token=${token}`, { headers: APP_TOKEN })],
    ['waba_subscription', () => postJson(`${api}/${wabaId}/subscribed_apps`, {})],
    ['phone_numbers', () => graph(`${api}/${wabaId}/phone_numbers`)],
    [
      'registration',
      () => postJson(`${api}/${id}/register`, { messaging_product: 'whatsapp', pin: '123456' }),
    ],
    [
      'app_state_sync',
      () =>
        postJson(`${api}/${app.id}/smb_app_data`, {
          messaging_product: 'whatsapp',
          sync_type: 'history',
        }),
    ],
  ];
  for (const [match, make] of calls) {
    expect((await fault(match)).status).toBe(200);
    expect([match, (await make()).status, (await make()).status]).toEqual([match, 503, 200]);
  }
});
