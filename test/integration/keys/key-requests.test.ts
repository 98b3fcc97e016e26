import { beforeEach, describe, expect, test } from 'vitest';
import { hashApiKey } from '../../../src/features/keys/api-key.ts';
import { findApiKey } from '../../../src/features/keys/api-key-store.ts';
import { createKey, listKeys, revokeKey } from '../../../src/features/keys/api-keys.ts';
import { followKeyRequest } from '../../../src/features/keys/follow-key-request.ts';
import {
  decideKeyRequest,
  keyRequestOf,
  keyRequestsOf,
  requestKey,
  waitingKeyRequests,
  withdrawKeyRequest,
} from '../../../src/features/keys/key-requests.ts';
import { revealKey } from '../../../src/features/keys/reveal-key.ts';
import { listAudit, OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { freshTenant } from '../../support/test-accounts.ts';
import { databaseOfFile } from '../../support/test-database.ts';

const ANN = { id: '1', name: 'ann@shop.example' };
const ACTOR = { name: ANN.name, requestId: 'req-1', ip: '192.0.2.1' };
const DAY_MS = 86_400_000;

const store = databaseOfFile(30);
let waba: string;

beforeEach(async () => {
  waba = (await freshTenant(store.database)).wabaId;
});

const tools = () => ({ database: store.database, actor: ACTOR });
const ask = (given: object = {}, requester = ANN) =>
  requestKey(tools(), waba, requester, { purpose: 'order system', ...given });
const decide = (id: string, state: 'approved' | 'denied', note = '') =>
  decideKeyRequest({ database: store.database, actor: OPERATOR_COMMAND }, id, { state, note });
const reveal = (id: string) => revealKey(tools(), waba, id);
const withdraw = (id: string, requesterId = ANN.id) => withdrawKeyRequest(tools(), waba, id, requesterId);

const audited = () => listAudit(store, { wabaId: waba });
const actions = async () => (await audited()).map(({ action }) => action).reverse();

const waiting = async () => (await waitingKeyRequests(store)).filter(({ wabaId }) => wabaId === waba);

const overdue = (column: 'decide_until' | 'reveal_until') =>
  execute(
    store.database,
    `update api_key_requests set ${column} = now() - interval '1 second' where waba_id = :waba`,
    { waba },
  );

describe('reveal', () => {
  test('20 reveals at once make exactly one key; the others hear when and by whom it was shown', async () => {
    const { id } = await ask({ scopes: ['read'], validDays: 30 });
    await decide(id, 'approved', 'as agreed');
    const answers = await Promise.allSettled(Array.from({ length: 20 }, () => reveal(id)));
    const shown = answers.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const refused = answers.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    expect(shown).toHaveLength(1);
    for (const error of refused) expect(error).toMatchObject({ code: 'key_already_revealed' });
    expect(refused[0].message).toMatch(/was revealed 20\d\d-.* by ann@shop\.example/);
    expect(await listKeys(store, waba)).toHaveLength(1);
    const key = await findApiKey(store.database, hashApiKey(shown[0]?.apiKey ?? ''));
    expect(key).toMatchObject({ wabaId: waba, scopes: ['read'], isExpired: false });
    expect(shown[0]?.expiresAt?.getTime()).toBeCloseTo(Date.now() + 30 * DAY_MS, -5);
  });

  test('the key is in no table, only its hash', async () => {
    const { id } = await ask();
    await decide(id, 'approved');
    const { apiKey } = await reveal(id);
    const tables = ['audit_log', 'api_key_requests', 'api_keys', 'workflow_tasks'];
    for (const table of tables) {
      const rows = await query<{ text: string }>(
        store.database,
        `select cast(t as text) as text from ${table} t`,
      );
      expect(JSON.stringify(rows), table).not.toContain(apiKey.slice(11));
    }
  });

  test('a request that is not approved has nothing to reveal, and foreign ones do not exist', async () => {
    const { id } = await ask();
    await expect(reveal(id)).rejects.toMatchObject({ code: 'key_not_approved' });
    await decide(id, 'approved');
    const foreign = revealKey(tools(), (await freshTenant(store.database)).wabaId, id);
    await expect(foreign).rejects.toMatchObject({ code: 'unknown_key_request' });
    await overdue('reveal_until');
    await expect(reveal(id)).rejects.toMatchObject({ code: 'key_not_approved' });
    expect(await listKeys(store, waba)).toEqual([]);
  });

  test('a replaced key works until its overlap ends, or until it is revoked when none was chosen', async () => {
    const old = await createKey(tools(), waba, { name: 'old', expiresAt: null });
    const state = async () => await findApiKey(store.database, hashApiKey(old.apiKey));
    const replace = async (overlapHours: number | null) => {
      const { id } = await ask({ replacesKeyId: old.id, overlapHours });
      await decide(id, 'approved');
      return await reveal(id);
    };
    expect(await replace(null)).toMatchObject({ replacesKeyId: old.id, replacedEndsAt: null });
    expect(await state()).toMatchObject({ isExpired: false });
    const { replacedEndsAt } = await replace(48);
    expect(replacedEndsAt?.getTime()).toBeCloseTo(Date.now() + 2 * DAY_MS, -5);
    expect((await replace(72)).replacedEndsAt).toEqual(replacedEndsAt);
    expect(await state()).toMatchObject({ isExpired: false });
    await replace(0);
    expect(await state()).toMatchObject({ isExpired: true });
  });
});

describe('states', () => {
  test('every step is in the audit log, with who and from where', async () => {
    const first = await ask();
    await decide(first.id, 'denied', 'not yet');
    const second = await ask();
    await withdraw(second.id);
    const third = await ask();
    await decide(third.id, 'approved');
    const { id } = await reveal(third.id);
    await revokeKey(tools(), waba, id);
    await revokeKey(tools(), waba, id);
    const asked = 'key_request.created';
    const decided = ['key_request.denied', asked, 'key_request.withdrawn', asked, 'key_request.approved'];
    const revealed = ['key.created', 'key_request.revealed', 'key.revoked'];
    expect(await actions()).toEqual([asked, ...decided, ...revealed]);
    const [latest] = await audited();
    expect(latest).toMatchObject({ actor: ANN.name, requestId: 'req-1', ip: '192.0.2.1' });
  });

  test('final states stay: no decision, withdrawal or reveal changes them', async () => {
    const denied = await decide((await ask()).id, 'denied');
    expect(denied).toMatchObject({ state: 'denied', decidedBy: 'operator command', note: null });
    const { id } = await ask();
    await withdraw(id);
    for (const over of [denied.id, id]) {
      await expect(decide(over, 'approved')).rejects.toMatchObject({ code: 'key_request_over' });
      await expect(decide(over, 'denied')).rejects.toMatchObject({ code: 'key_request_over' });
      await expect(reveal(over)).rejects.toMatchObject({ code: 'key_not_approved' });
      const withdrawal = withdraw(over);
      await expect(withdrawal).rejects.toMatchObject({ code: 'key_request_over' });
    }
  });

  test('an approval can be taken back until the key is revealed', async () => {
    const { id } = await ask();
    await decide(id, 'approved');
    await expect(decide(id, 'approved')).rejects.toMatchObject({ code: 'key_request_over' });
    await decide(id, 'denied', 'the wrong WABA');
    await expect(reveal(id)).rejects.toMatchObject({ code: 'key_not_approved' });
  });

  test('time is over for everybody at once, whether or not a workflow has noted it', async () => {
    const { id } = await ask();
    expect(await waiting()).toHaveLength(1);
    await overdue('decide_until');
    await expect(decide(id, 'approved')).rejects.toMatchObject({ code: 'key_request_over' });
    expect(await waiting()).toEqual([]);
    expect(await keyRequestOf(store, waba, id)).toMatchObject({ state: 'expired' });
    // And it does not keep its requester from asking again.
    expect(await ask()).toMatchObject({ state: 'requested' });
    expect(await actions()).toEqual(['key_request.created', 'key_request.expired', 'key_request.created']);
  });

  test('a reminder is due after one day and after three, each once', async () => {
    const { id, createdAt } = await ask();
    const at = async (days: number) => {
      const now = () => createdAt.getTime() + days * DAY_MS;
      const followed = await followKeyRequest({ ...store, now }, waba, id);
      return [followed?.reminder, Math.round((followed?.waitMs ?? 0) / 3_600_000)];
    };
    expect(await at(0)).toEqual([null, 24]);
    expect(await at(1)).toEqual([1, 24]);
    expect(await at(1.5)).toEqual([null, 24]);
    expect(await at(3.1)).toEqual([2, 24]);
    expect(await at(6.5)).toEqual([null, 12]);
  });
});

describe('limits', () => {
  test('one user has one pending request per WABA, and a WABA five; requests at once cannot pass', async () => {
    const once = await Promise.allSettled([ask(), ask(), ask()]);
    expect(once.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    await expect(ask()).rejects.toMatchObject({ code: 'key_request_open' });
    const others = Array.from({ length: 9 }, (_, n) => ask({}, { id: `u${n}`, name: `u${n}@shop.example` }));
    const asked = await Promise.allSettled(others);
    expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(4);
    const refused = asked.find(({ status }) => status === 'rejected') as PromiseRejectedResult;
    expect(refused.reason).toMatchObject({ code: 'too_many_key_requests' });
  });

  test('asking and withdrawing in turn ends after 20 times a day', async () => {
    for (let n = 0; n < 20; n += 1) {
      const { id } = await ask();
      await withdraw(id);
    }
    await expect(ask()).rejects.toMatchObject({ code: 'too_many_key_requests' });
  });

  test('only the requester withdraws', async () => {
    const { id } = await ask();
    const other = withdraw(id, '2');
    await expect(other).rejects.toMatchObject({ code: 'not_the_requester' });
  });

  test.each([
    [{ purpose: '' }, 'purpose'],
    [{ purpose: 'a\u0000b' }, 'purpose'],
    [{ purpose: 'x'.repeat(201) }, 'purpose'],
    [{ scopes: ['everything'] }, 'scopes'],
    [{ scopes: [] }, 'scopes'],
    [{ validDays: 0 }, 'validDays'],
    [{ validDays: 1.5 }, 'validDays'],
    [{ validDays: Number.NaN }, 'validDays'],
    [{ validDays: 1e9 }, 'validDays'],
    [{ overlapHours: 1 }, 'overlapHours'],
    [{ replacesKeyId: '1', overlapHours: -1 }, 'overlapHours'],
    [{ replacesKeyId: '999999' }, 'replacesKeyId'],
    [{ replacesKeyId: "1' or true" }, 'replacesKeyId'],
  ])('%j is refused and says which member is wrong', async (given, param) => {
    await expect(ask(given)).rejects.toMatchObject({ name: 'RequestError', param });
    expect(await keyRequestsOf(store, waba)).toEqual([]);
  });

  test('a key of another WABA, or one that has ended, cannot be replaced', async () => {
    const { wabaId } = await freshTenant(store.database);
    const foreign = await createKey(tools(), wabaId, { name: 'theirs', expiresAt: null });
    const replacesForeign = ask({ replacesKeyId: foreign.id });
    await expect(replacesForeign).rejects.toMatchObject({ code: 'unknown_key' });
    const own = await createKey(tools(), waba, { name: 'own', expiresAt: null });
    await revokeKey(tools(), waba, own.id);
    await expect(ask({ replacesKeyId: own.id })).rejects.toMatchObject({ code: 'key_not_active' });
  });
});
