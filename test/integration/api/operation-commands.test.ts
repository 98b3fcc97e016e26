import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Operation } from '../../../src/api/operations/operation.ts';
import { memberSchema } from '../../../src/api/operations/operation-command.ts';
import { OPERATIONS } from '../../../src/api/operations/operations.ts';
import { settingsOf } from '../../../src/engine/endpoint/settings.ts';
import { type AdminRun, runAdmin } from '../../support/admin-cli.ts';
import { type FreshTenant, freshTenant } from '../../support/test-accounts.ts';
import { testSettings } from '../../support/test-settings.ts';
import { publish } from '../replays/replay-fixtures.ts';
import { apiOfFile } from './api-harness.ts';
import { externalClient } from './external-client.ts';

type Members = Readonly<Record<string, unknown>>;

type Verdict = { refused: boolean; code: string | null };

const WITH_COMMAND = OPERATIONS.filter(({ command }) => command !== undefined);

/** An address, so that no name has to be resolved. */
const URL = 'https://93.184.216.34/hook';

/** Both doors have the settings of the test API. */
const AS_THE_API = {
  HELIOGRAPH_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
  HELIOGRAPH_WEBHOOK_ALLOW_HTTP: 'false',
  HELIOGRAPH_WEBHOOK_ALLOW_CIDRS: '',
};

const api = apiOfFile();
let tenant: FreshTenant;
let client: Awaited<ReturnType<typeof externalClient>>;
let endpointId: string;

beforeEach(async () => {
  tenant = await freshTenant(api.database);
  client = await externalClient(api, tenant.wabaId);
  endpointId = (await client('POST', '/api/external/webhook-endpoints', { url: URL })).json().id;
  await publish(api.database, tenant.wabaId, { count: 2, keys: 2 });
});

function operationOf(id: string): Operation {
  const found = WITH_COMMAND.find((each) => each.id === id);
  if (found === undefined) throw new Error(`no operation with a command is called ${id}`);
  return found;
}

async function byRest({ method, path }: Operation, { id, ...members }: Members): Promise<Verdict> {
  const hasBody = ['POST', 'PUT', 'PATCH'].includes(method);
  const response = await client(
    method as 'POST',
    path.replace(':id', String(id)),
    hasBody ? members : undefined,
  );
  const refused = response.statusCode >= 400;
  return { refused, code: refused ? response.json().error.code : null };
}

async function byCommand(
  operation: Operation,
  { id }: Members,
  options: readonly string[],
): Promise<Verdict> {
  const { name = '', waba } = operation.command ?? {};
  const args = [
    ...name.split(' '),
    ...(operation.path.includes(':id') ? [String(id)] : []),
    ...(typeof waba === 'string' ? ['--waba', tenant.wabaId] : []),
    ...options,
    '--json',
  ];
  return verdictOf(await runAdmin(testSettings(api.databaseUrl, AS_THE_API), args));
}

/** Usage that commander refuses has no JSON. */
function verdictOf({ exitCode, stdout, stderr }: AdminRun): Verdict {
  if (exitCode === 0) return { refused: false, code: null };
  const code = stdout === '' ? 'invalid_value' : JSON.parse(stdout).error.code;
  expect([exitCode, code, stderr]).toEqual([
    code === 'invalid_value' ? 2 : 1,
    code,
    expect.stringContaining('error: '),
  ]);
  return { refused: true, code };
}

/** Codes of commands that the API calls otherwise. */
const IN_THE_API: Readonly<Record<string, string>> = {
  invalid_value: 'invalid_parameter',
  unknown_endpoint: 'not_found',
  unknown_replay: 'not_found',
  unknown_broadcast: 'not_found',
  unknown_delivery: 'not_found',
  https_required: 'invalid_url',
  address_not_allowed: 'invalid_url',
};

test('to import the descriptions starts nothing: a process that does only that ends', () => {
  const file = fileURLToPath(
    new globalThis.URL('../../../src/api/operations/operations.ts', import.meta.url),
  );
  const script = `const { OPERATIONS } = await import(${JSON.stringify(file)}); console.log(OPERATIONS.length)`;
  const args = ['--input-type=module', '--eval', script];
  const printed = execFileSync(process.execPath, args, { env: {}, encoding: 'utf8', timeout: 60_000 });
  expect(Number(printed)).toBe(OPERATIONS.length);
});

describe('members', () => {
  /** Members that are read from `--header`, `--secret-stdin`, `--app-secret-stdin`, `--verify-token` and the settings' options. */
  const READ = new Set([
    'customHeaders',
    'secret',
    'appSecret',
    'verifyToken',
    ...settingsOf().map(([name]) => name as string),
  ]);

  test.each(WITH_COMMAND.map((each) => [each.command?.name ?? '', each] as const))(
    'admin %s takes every member of its operation, and no other',
    (_, operation) => {
      const { command, query, body } = operation;
      const members = [query, body].flatMap((part) =>
        Object.keys({ ...(part as { properties?: object }) }.properties ?? {}),
      );
      const options = Object.keys(command?.options ?? {});
      for (const option of options) expect(() => memberSchema(operation, option)).not.toThrow();
      const missing = members.filter((member) => !options.includes(member));
      const isPage = (member: string) => operation.method === 'GET' && ['limit', 'cursor'].includes(member);
      const read = missing.filter((member) => !isPage(member));
      expect(read.filter((member) => !READ.has(member))).toEqual([]);
      expect(read.length > 0).toBe(command?.read !== undefined);
    },
  );
});

describe('limits', () => {
  /** A member with values at and beyond its limits, as a request and as a command line write them. */
  const cases: [string, string, readonly unknown[]][] = [
    ['rotateWebhookEndpointSecret', 'overlapHours', [0, 168, 169, -1, 'x']],
    ['startReplay', 'endpointId', ['0', 'x', '1'.repeat(19)]],
    ['startReplay', 'from', ['yesterday', '2027-02-30T00:00:00Z', '2026-01-01T00:00:00']],
    ['startReplay', 'to', ['tomorrow']],
    ['startReplay', 'eventTypes', [['message'], ['nothing'], []]],
    ['startReplay', 'states', [['pending'], ['delivered', 'nothing']]],
    ['startReplay', 'deliveryIds', [['dlv_1'], ['x']]],
    ['enableWebhookEndpoint', 'waiting', ['keep', 'send']],
    ['pauseWebhookEndpoint', 'reason', ['release', 'x'.repeat(200), 'x'.repeat(201), 'a\nb']],
    [
      'setOperationsUrl',
      'url',
      ['x', 'http://93.184.216.34/', 'https://10.0.0.1/', 'https://93.184.216.34/operations'],
    ],
  ];

  test.each(cases)('%s: %s has the same limits in both', async (id, member, values) => {
    const operation = operationOf(id);
    const option = operation.command?.options?.[member];
    const [flag = ''] = option?.flags.split(' ') ?? [];
    for (const value of values) {
      const repeated = [value].flat().flatMap((one) => [flag, String(one)]);
      const args = option?.isRepeated ? repeated : [flag, String(value)];
      const extra =
        id === 'startReplay' ? { rest: { dryRun: true }, args: ['--dry-run'] } : { rest: {}, args: [] };
      const rest = await byRest(operation, { id: endpointId, [member]: value, ...extra.rest });
      const command = await byCommand(operation, { id: endpointId }, [...args, ...extra.args]);
      expect([value, command.refused, IN_THE_API[command.code ?? ''] ?? command.code]).toEqual([
        value,
        rest.refused,
        rest.code,
      ]);
    }
  });

  test.each(settingsOf().map(([name, setting]) => [name as string, setting] as const))(
    'the setting %s has the same limits in both',
    async (name, { kind, command }) => {
      const [flag = ''] = command.flags.split(' ');
      const values = {
        number: [-1, 0, 1, 60, 1_000, 10_001, 999_999_999],
        numbers: [[1], [0], [999_999_999], Array.from({ length: 21 }, () => 60)],
        text: ['shop', 'x'.repeat(201)],
        lines: [
          ['$.text.body equals "hi"'],
          ['text equals 1'],
          ['$.a in []', 'not $.b exists'],
          ['$.a like 1'],
        ],
        texts: [['nothing'], ['message'], [tenant.number]],
        choice: ['nothing', 'none', 'event', 'standard', 'auto'],
      }[kind];
      const operation = operationOf('updateWebhookEndpoint');
      for (const value of values) {
        const rest = await byRest(operation, { id: endpointId, [name]: value });
        const run = await byCommand(operation, { id: endpointId }, [
          `${flag}=${kind === 'lines' ? [value].flat().join('\n') : String(value)}`,
        ]);
        expect([name, value, run.refused, IN_THE_API[run.code ?? ''] ?? run.code]).toEqual([
          name,
          value,
          rest.refused,
          rest.code,
        ]);
      }
    },
  );
});

describe('errors', () => {
  const UNKNOWN_DELIVERY = 'dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5062';

  test.each(
    WITH_COMMAND.filter(({ path }) => path.includes(':id')).map(
      (each) => [each.command?.name ?? '', each] as const,
    ),
  )('admin %s refuses an object that does not exist as the API does', async (name, operation) => {
    const id = name.startsWith('delivery') ? UNKNOWN_DELIVERY : '999999';
    const change = name === 'endpoint update' ? { description: 'x' } : {};
    const rest = await byRest(operation, { id, ...change });
    const args = name === 'endpoint update' ? ['--description', 'x'] : [];
    const command = await byCommand(operation, { id }, args);
    expect(rest).toEqual({ refused: true, code: 'not_found' });
    expect(IN_THE_API[command.code ?? '']).toBe('not_found');
  });

  test('refusals that depend on the state have the same code in both', async () => {
    const refused = async (id: string, members: Members, args: readonly string[], expected: string) => {
      const operation = operationOf(id);
      const given = { id: endpointId, ...members };
      expect([id, await byRest(operation, given)]).toEqual([id, { refused: true, code: expected }]);
      expect([id, await byCommand(operation, given, args)]).toEqual([id, { refused: true, code: expected }]);
      expect([id, operation.errors]).toEqual([id, expect.arrayContaining([expected])]);
    };
    await refused('rotateOperationsUrlSecret', {}, [], 'no_operations_url');
    await refused('setOperationsUrl', { url: URL }, ['--url', URL], 'url_is_webhook_endpoint');
    await refused('rotateWebhookEndpointSigningKey', {}, [], 'no_signing_key');
    const none = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' };
    await refused('startReplay', none, ['--from', none.from, '--to', none.to], 'nothing_to_replay');
    const unknown = { endpointId: '999999', states: ['failed'] };
    await refused('startReplay', unknown, ['--endpoint', '999999', '--states', 'failed'], 'unknown_endpoint');
    const numbers = { phoneNumberIds: ['1'] };
    await refused('updateWebhookEndpoint', numbers, ['--numbers', '1'], 'unknown_phone_number');
    await client('POST', `/api/external/webhook-endpoints/${endpointId}/pause`, {});
    await refused('retryWebhookEndpoint', {}, [], 'endpoint_not_enabled');
    await refused('enableWebhookEndpoint', {}, [], 'waiting_choice_required');
  });
});
