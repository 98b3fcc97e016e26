import { readdirSync, readFileSync } from 'node:fs';
import { Command } from 'commander';
import { describe, expect, test, vi } from 'vitest';
import {
  CreatedEndpoint,
  EndpointChange,
  EndpointWithWaiting,
  NewEndpoint,
} from '../../../src/api/endpoints/endpoint-schemas.ts';
import { describeEndpoint } from '../../../src/api/endpoints/endpoint-text.ts';
import { endpointForm } from '../../../src/api/portal/endpoints/endpoint-form.ts';
import {
  optionsOf,
  readEndpointForm,
  valuesOf,
} from '../../../src/api/portal/endpoints/endpoint-form-values.ts';
import { settingsList } from '../../../src/api/portal/endpoints/endpoint-settings.ts';
import { formValues } from '../../../src/api/portal/form-values.ts';
import { SETTINGS, settingsOf } from '../../../src/engine/endpoint/settings.ts';
import { findEndpoint, insertEndpoint, saveEndpointOptions } from '../../../src/engine/endpoint/store.ts';
import {
  givenEndpointOptions,
  withEndpointOptions,
} from '../../../src/features/endpoints/commands/endpoint-options.ts';
import {
  checkEndpointOptions,
  type EndpointOptions,
} from '../../../src/features/endpoints/endpoint-options.ts';
import type { EndpointStatus, EndpointView } from '../../../src/features/endpoints/endpoints.ts';
import type { Config } from '../../../src/platform/config/config.ts';

/** A setting that the product does not have: all that is said of it is this entry of the table. */
vi.mock('../../../src/engine/endpoint/settings.ts', async (importOriginal) => {
  const settings = await importOriginal<typeof import('../../../src/engine/endpoint/settings.ts')>();
  const { numberSetting, wholeNumber } = await import('../../../src/engine/endpoint/setting.ts');
  const madeUpSeconds = numberSetting({
    section: 'limits',
    description: 'What nobody needs.',
    check: (seconds) => wholeNumber('The made-up time', seconds, 1, 60),
    portal: { field: 'madeUpMinutes', label: 'Made up', unit: 'minutes', perUnit: 60, byDefault: 'never' },
    command: { flags: '--made-up <seconds>', help: 'what nobody needs', label: 'made up', show: String },
  });
  Object.assign(settings.SETTINGS, { madeUpSeconds });
  return settings;
});

const NAMES = Object.keys(SETTINGS);

const DEFAULTS = {
  retryScheduleSeconds: [5, 60],
  timeoutMs: 15_000,
  deliveryWorkflows: 'auto' as const,
};

const ENDPOINT = {
  ...Object.fromEntries(settingsOf().map(([name, { fallback }]) => [name, fallback])),
  id: '3',
  wabaId: '900000000000101',
  url: 'https://shop.example/hook',
  version: 1,
  customHeaderNames: [],
  mode: 'open',
  modeReason: null,
  probeFailures: 0,
  failingSince: null,
  nextProbeAt: null,
  previousSecretExpiresAt: null,
  publicKeys: [],
  clientCertificate: null,
  modeChangedAt: new Date(0),
  createdAt: new Date(0),
  updatedAt: new Date(0),
  waiting: { count: 0 },
} as unknown as EndpointStatus;

const formOf = (endpoint: EndpointView) =>
  endpointForm({
    viewer: { csrfToken: 't' } as never,
    action: '/a',
    label: 'Save',
    cancelHref: '/c',
    checkHref: '/k',
    phoneNumbers: [{ phoneNumberId: '800000000000111', displayPhoneNumber: '+1' }],
    values: valuesOf(endpoint),
    headerNames: [],
    defaults: DEFAULTS,
    error: null,
    urlCheck: '',
  }).toString();

/** Runs a function of the store and returns the statement that it made, with its parameters. */
async function statementOf(run: (database: never) => Promise<unknown>) {
  const raw = vi.fn(async (_text: string, _bindings: unknown) => ({ rows: [], rowCount: 1 }));
  const notify = vi.fn();
  await run({ raw, notify } as never);
  const [text = '', bindings] = raw.mock.calls[0] ?? [];
  return { text, bindings, notified: notify.mock.calls };
}

describe('every setting of the table, and one that is only there', () => {
  test('stands in the requests and answers of the API', () => {
    expect(NAMES).toContain('madeUpSeconds');
    for (const schema of [NewEndpoint, EndpointChange, EndpointWithWaiting, CreatedEndpoint]) {
      const { properties, required } = schema as unknown as { properties: object; required?: string[] };
      expect(Object.keys(properties)).toEqual(expect.arrayContaining(NAMES));
      if (schema === NewEndpoint) expect(required).toEqual(['url']);
      else if (schema !== EndpointChange) expect(required).toEqual(expect.arrayContaining(NAMES));
    }
  });

  test('is a field of the form and a line of the page', () => {
    const form = formOf(ENDPOINT);
    const page = settingsList(ENDPOINT, DEFAULTS).toString();
    for (const [, { portal, section }] of settingsOf()) {
      expect(form).toContain(`name="${portal.field}"`);
      if (section !== 'where') expect(page).toContain(`<dt>${portal.label}</dt>`);
    }
    expect(page).toContain('<dt>Made up</dt><dd>never');
    expect(formOf({ ...ENDPOINT, madeUpSeconds: 120 } as EndpointView)).toMatch(
      /Made up \(minutes\)<.*name="madeUpMinutes"[^>]* value="2"/,
    );
  });

  test('is read from the form and checked', async () => {
    const sent = { url: 'https://shop.example/hook', madeUpMinutes: '0.5' };
    const given = optionsOf(readEndpointForm(formValues(sent)));
    expect(given).toMatchObject({ madeUpSeconds: 30, maxInFlight: null });
    const rules = { database: null as never, urlRules: null as never, maxTimeoutMs: 15_000 };
    const check = (madeUpSeconds: number | null) =>
      checkEndpointOptions(rules, '900000000000101', { madeUpSeconds } as EndpointOptions);
    expect(await check(30)).toEqual({ madeUpSeconds: 30 });
    expect(await check(null)).toEqual({ madeUpSeconds: null });
    await expect(check(61)).rejects.toMatchObject({ param: 'madeUpSeconds' });
  });

  test('is an option of the commands and a line of what they show', async () => {
    const command = withEndpointOptions(new Command());
    const flags = command.options.map((option) => option.flags);
    expect(flags).toEqual(expect.arrayContaining(settingsOf().map(([, setting]) => setting.command.flags)));
    command.parse(['--made-up', '7', '--rate-limit', 'default'], { from: 'user' });
    expect(await givenEndpointOptions(command.opts())).toEqual({
      madeUpSeconds: 7,
      rateLimitPerSecond: null,
    });
    const { text } = describeEndpoint(
      {
        webhooks: { retryScheduleMs: [5_000], timeoutMs: 15_000 },
        delivery: { workflows: 'auto' },
      } as Config,
      { ...ENDPOINT, madeUpSeconds: 7 } as EndpointStatus,
    );
    expect(text).toMatch(/\ntimeout +15 s \(default\)\n/);
    expect(text).toMatch(
      /\nin flight +adapts to the server, up to 100 for each worker process \(default\)\n/,
    );
    for (const [, setting] of settingsOf()) expect(text).toContain(`\n${setting.command.label} `);
    expect(text).toMatch(/\nmade up +7\n/);
  });

  test('is read and written by the store', async () => {
    const row = { id: '3', url: 'https://shop.example/hook', secretSealed: 's' };
    const read = await statementOf((database) => findEndpoint(database, '1', '3'));
    const insert = await statementOf((database) => insertEndpoint(database, '1', row));
    const update = await statementOf((database) =>
      saveEndpointOptions(database, '1', { ...ENDPOINT, ...row } as never),
    );
    expect(read.text).toContain('made_up_seconds as "madeUpSeconds"');
    expect(insert.text).toMatch(/made_up_seconds[\s\S]*values[\s\S]*cast\(:madeUpSeconds as integer\)/);
    expect(insert.bindings).toMatchObject({ madeUpSeconds: null, asymmetricSignature: 'none' });
    expect(update.text).toContain('made_up_seconds = cast(:madeUpSeconds as integer)');
    expect(update.notified).toEqual([['heliograph_endpoints', '3']]);
    const folder = 'src/platform/postgres/migrations';
    const added = readdirSync(folder).map((file) => readFileSync(`${folder}/${file}`, 'utf8'));
    const columns = added
      .join('\n')
      .replaceAll(/alter table webhook_endpoints add |add column if not exists /g, '\n  ');
    for (const name of NAMES.filter((one) => one !== 'madeUpSeconds')) {
      const [, column] = new RegExp(`(\\w+)(?:, 'failures'\\))? as "${name}"`).exec(read.text) ?? [];
      expect(columns).toMatch(new RegExp(`^  ${column} `, 'm'));
    }
  });
});
