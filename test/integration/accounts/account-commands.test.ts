import { describe, expect, test } from 'vitest';
import { openAccessToken } from '../../../src/features/accounts/access-tokens.ts';
import { listPhoneNumbers } from '../../../src/features/accounts/accounts.ts';
import { hashApiKey } from '../../../src/features/keys/api-key.ts';
import { findApiKey } from '../../../src/features/keys/api-key-store.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { OTHER_WABA, startAdmin, WABA } from '../../support/admin-cli.ts';
import { testSecretBox } from '../../support/test-accounts.ts';

const TOKEN = 'EAAGtest-access-token';

describe('admin tenant and waba', () => {
  test('set up a tenant with numbers and a token that is stored sealed only', async () => {
    const { database, json, admin } = await startAdmin({ empty: true });
    const { userId } = await json('tenant', 'create', '--name', '  Café "Zum Löwen"  ');
    expect(userId).toEqual(expect.any(Number));
    const args = [
      'waba',
      'add',
      '--tenant',
      String(userId),
      '--waba',
      WABA,
      '--json',
      '--access-token-stdin',
    ];
    const numbers = ['--number', '800000000000111:12025550100:Shop: main', '--number', '800000000000112'];
    const added = await admin([...args, ...numbers], `${TOKEN}\n`);
    expect(added).toMatchObject({ exitCode: 0, stderr: '' });
    expect(JSON.parse(added.stdout)).toEqual({
      wabaId: WABA,
      userId,
      businessName: 'Café "Zum Löwen"',
      hasAccessToken: true,
      phoneNumbers: [
        {
          phoneNumberId: '800000000000111',
          displayPhoneNumber: '12025550100',
          verifiedName: 'Shop: main',
          qualityRating: null,
        },
        { phoneNumberId: '800000000000112', displayPhoneNumber: '', verifiedName: '', qualityRating: null },
      ],
    });
    const [row] = await query<{ text: string }>(database, 'select wabas::text as text from wabas');
    expect(row?.text).not.toContain(TOKEN);
    expect(await openAccessToken({ database, secretBox: testSecretBox }, WABA)).toBe(TOKEN);
    expect(await json('tenant', 'list')).toMatchObject([{ userId, wabaIds: [WABA] }]);
    expect(await json('waba', 'list')).toMatchObject([{ wabaId: WABA, userId, hasAccessToken: true }]);
    expect((await admin(['waba', 'list'])).stdout).toMatch(
      /WABA +USER ID .*\n900000000000101 .*stored +800000000000111, 800000000000112\n/,
    );
  });

  test('adding a WABA again keeps what is not given; set-token replaces the token', async () => {
    const { database, json } = await startAdmin();
    const tools = { database, secretBox: testSecretBox };
    const [{ userId }] = await json('waba', 'list');
    const add = ['waba', 'add', '--tenant', String(userId), '--waba', WABA];
    await json(...add, '--access-token', TOKEN);
    await json(...add, '--number', '800000000000111::New Name', '--number', '800000000000113');
    expect(await openAccessToken(tools, WABA)).toBe(TOKEN);
    expect(await listPhoneNumbers(database, WABA)).toMatchObject([
      {
        phoneNumberId: '800000000000111',
        displayPhoneNumber: '12025550100',
        verifiedName: 'New Name',
        qualityRating: 'GREEN',
      },
      { phoneNumberId: '800000000000112' },
      { phoneNumberId: '800000000000113' },
    ]);
    expect(await json('waba', 'set-token', WABA, '--access-token', 'other-token')).toEqual({
      wabaId: WABA,
      hasAccessToken: true,
    });
    expect(await openAccessToken(tools, WABA)).toBe('other-token');
  });

  test('name all options that are missing at once', async () => {
    const { admin } = await startAdmin();
    const none = await admin(['waba', 'add']);
    expect([none.exitCode, none.stdout]).toEqual([2, '']);
    expect(none.stderr).toContain('required options not specified: --tenant <tenantId>, --waba <id>');
    const one = await admin(['waba', 'add', '--tenant', '1']);
    expect(one.stderr).toContain("required option '--waba <id>' not specified");
  });

  test("never take another tenant's WABA or number, and then change nothing", async () => {
    const { database, admin, json } = await startAdmin();
    const [first, second] = await json('waba', 'list');
    const take = await admin(['waba', 'add', '--tenant', String(first.userId), '--waba', second.wabaId]);
    expect(take).toMatchObject({ exitCode: 1, stdout: '' });
    expect(take.stderr).toBe(`error: WABA ${second.wabaId} belongs to another tenant and stays with it.\n`);
    const add = ['waba', 'add', '--tenant', String(first.userId), '--waba', first.wabaId];
    const steal = await admin([
      ...add,
      '--number',
      '800000000000199',
      '--number',
      '800000000000221',
      '--json',
    ]);
    expect(steal).toMatchObject({ exitCode: 1 });
    expect(JSON.parse(steal.stdout)).toEqual({
      error: {
        code: 'phone_number_taken',
        message: `Phone number 800000000000221 belongs to WABA ${OTHER_WABA}.`,
      },
    });
    expect((await listPhoneNumbers(database, first.wabaId)).map((number) => number.phoneNumberId)).toEqual([
      '800000000000111',
      '800000000000112',
    ]);
  });

  test.each([
    ['an unknown tenant', ['waba', 'add', '--tenant', '999', '--waba', '1'], 1, 'no tenant with userId 999'],
    ['a WABA id with letters', ['waba', 'set-token', 'abc', '--access-token', 'x'], 2, '1 to 64 digits'],
    ['an unknown WABA', ['waba', 'set-token', '77', '--access-token', 'x'], 1, 'There is no WABA 77.'],
    ['an empty token', ['waba', 'set-token', WABA, '--access-token-stdin'], 2, 'access token must be'],
    [
      'a token both ways',
      ['waba', 'set-token', WABA, '--access-token-stdin', '--access-token', 'x'],
      2,
      'cannot be',
    ],
    ['an empty name', ['tenant', 'create', '--name', '  '], 2, 'must not be empty'],
    [
      'a misspelt number',
      ['waba', 'add', '--tenant', '1', '--waba', '1', '--number', '+1'],
      2,
      'phoneNumberId',
    ],
    ['an unknown command', ['tenant', 'forget'], 2, 'unknown command'],
  ])('%s is refused in one sentence', async (_, args, exitCode, message) => {
    const { admin } = await startAdmin();
    const run = await admin(args);
    expect(run).toMatchObject({ exitCode, stdout: '' });
    expect(run.stderr).toMatch(/^error: [^\n]+\n(\(add --help.*\)\n)?$/);
    expect(run.stderr).toContain(message);
  });
});

describe('admin key', () => {
  test('shows a key once and stores its hash only', async () => {
    const { database, json, admin } = await startAdmin();
    const expires = '2027-03-04T06:06:07+01:00';
    const key = await json('key', 'create', '--waba', WABA, '--name', 'order system', '--expires', expires);
    expect(key).toEqual({
      id: expect.stringMatching(/^\d+$/),
      apiKey: expect.stringMatching(/^ck_[0-9a-f]{64}$/),
      prefix: key.apiKey.slice(0, 11),
      wabaId: WABA,
      name: 'order system',
      scopes: ['read'],
      allowedNetworks: null,
      maxMessagesPerDay: null,
      recipients: 'any',
      expiresAt: '2027-03-04T05:06:07.000Z',
    });
    const [row] = await query<{ text: string; hash: Buffer }>(
      database,
      'select api_keys::text as text, key_hash as hash from api_keys',
    );
    expect(row?.hash).toEqual(hashApiKey(key.apiKey));
    expect(row?.text).not.toContain(key.apiKey.slice(11, 40));
    const list = await admin(['key', 'list', '--waba', WABA]);
    expect(list.stdout).toContain(`${key.prefix}…${key.apiKey.slice(-4)}`);
    expect(list.stdout).not.toContain(key.apiKey);
    expect((await json('key', 'list', '--waba', WABA))[0]).toMatchObject({ id: key.id, state: 'active' });
    expect(await json('key', 'list', '--waba', OTHER_WABA)).toEqual([]);
    expect(await json('key', 'list')).toMatchObject([{ wabaId: WABA, id: key.id }]);
    expect((await admin(['key', 'list'])).stdout).toMatch(
      new RegExp(`^WABA +ID.*\\n${WABA} +${key.id} `, 's'),
    );
  });

  test('limits what a key sends, and changes only what is named', async () => {
    const { json, admin } = await startAdmin();
    const most = ['--max-messages-per-day', '10'];
    const key = await json('key', 'create', '--waba', WABA, '--scopes', 'send', ...most);
    expect(key).toMatchObject({ maxMessagesPerDay: 10, recipients: 'any' });
    const limited = await json('key', 'limit', key.id, '--recipients', 'open_conversations');
    const limits = { maxMessagesPerDay: 10, recipients: 'open_conversations' };
    expect(limited).toEqual({ id: key.id, allowedNetworks: null, ...limits });
    const networks = ['--networks', '192.0.2.0/24', '--max-messages-per-day', 'none'];
    await json('key', 'limit', key.id, ...networks);
    const changed = { ...limits, maxMessagesPerDay: null, allowedNetworks: ['192.0.2.0/24'] };
    expect((await json('key', 'list', '--waba', WABA))[0]).toMatchObject(changed);
    for (const wrong of [
      [],
      ['--max-messages-per-day', '0'],
      ['--recipients', 'all'],
      ['--max-messages-per-day', '-1'],
    ]) {
      expect([wrong, (await admin(['key', 'limit', key.id, ...wrong])).exitCode]).toEqual([wrong, 2]);
    }
  });

  test('revokes at once and for good; a second time tells when it was', async () => {
    const { database, json, admin } = await startAdmin();
    const { id, apiKey } = await json('key', 'create', '--waba', WABA);
    const revoked = await json('key', 'revoke', id);
    expect(revoked).toEqual({ id, revokedAt: expect.stringMatching(/^\d{4}-.*Z$/) });
    expect(await findApiKey(database, hashApiKey(apiKey))).toMatchObject({ isRevoked: true });
    expect(await json('key', 'revoke', id)).toEqual(revoked);
    const unknown = await admin(['key', 'revoke', '424242', '--json']);
    expect(unknown).toMatchObject({ exitCode: 1, stderr: 'error: There is no API key 424242.\n' });
    expect(JSON.parse(unknown.stdout)).toEqual({
      error: { code: 'unknown_key', message: 'There is no API key 424242.' },
    });
  });

  test('makes an expired key when asked to, and says so beside the result', async () => {
    const { database, admin } = await startAdmin();
    const args = ['key', 'create', '--waba', WABA, '--expires', '2020-01-01T00:00:00Z', '--json'];
    const run = await admin(args);
    expect(run.exitCode).toBe(0);
    expect(run.stderr).toMatch(/^note: .*401/);
    const { apiKey } = JSON.parse(run.stdout);
    expect(await findApiKey(database, hashApiKey(apiKey))).toMatchObject({ isExpired: true });
  });

  test('refuses a time that means no moment', async () => {
    const { admin } = await startAdmin();
    const run = await admin(['key', 'create', '--waba', WABA, '--expires', '2027-02-30T00:00:00Z']);
    expect(run).toMatchObject({ exitCode: 2, stdout: '' });
    expect(run.stderr).toContain('ISO 8601');
  });
});
