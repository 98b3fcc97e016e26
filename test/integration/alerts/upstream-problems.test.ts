import { describe, expect, test } from 'vitest';
import { forgetOldProblems } from '../../../src/features/accounts/upstream-problems.ts';
import { allAlerts } from '../../../src/ops/alerts/alerts.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../support/take-in.ts';
import { look, operator, seen, store, stranger, tenant, useAlertStore } from './alert-store.ts';

useAlertStore();

const NOW_S = Math.floor(Date.now() / 1_000);

/** What upstream reports in a field, so many seconds ago. */
function report(field: string, value: object, secondsAgo = 60): Buffer {
  const entry = { id: tenant.wabaId, time: NOW_S - secondsAgo, changes: [{ field, value }] };
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry: [entry] }));
}

const template = (event: string, secondsAgo: number, reason = 'NONE') =>
  report(
    'message_template_status_update',
    { event, reason, message_template_id: 5, message_template_name: 'cart', message_template_language: 'en' },
    secondsAgo,
  );

const quality = (event: string, secondsAgo: number) =>
  report(
    'phone_number_quality_update',
    { display_phone_number: '12025550100', event, max_daily_conversations_per_business: 'TIER_1K' },
    secondsAgo,
  );

async function reasons(): Promise<string[]> {
  await look();
  const alerts = await allAlerts(
    { database: store.database },
    { wabaId: tenant.wabaId, state: 'open', limit: 50 },
  );
  return alerts.map(({ reason }) => reason).sort();
}

describe('what upstream reports about a business is an alert, without any endpoint', () => {
  test('a template that is rejected or paused, until upstream approves it', async () => {
    const { database } = store;
    await execute(database, 'delete from webhook_endpoints');
    await takeIn(database, template('PENDING', 90), template('REJECTED', 80, 'INVALID_FORMAT'));
    expect(await reasons()).toEqual(['The template cart (en) is REJECTED: INVALID_FORMAT.']);
    expect(await seen()).toEqual([`template_stopped ${tenant.wabaId} status of 5`]);
    expect(await seen(operator)).toEqual(await seen());
    expect(await seen(stranger)).toEqual([]);
    await takeIn(database, template('APPROVED', 70));
    expect(await reasons()).toEqual([]);
    // It comes late, as upstream promises no order.
    await takeIn(database, template('PAUSED', 75));
    expect(await reasons()).toEqual([]);
    await takeIn(database, template('PAUSED', 60));
    expect(await reasons()).toEqual(['The template cart (en) is PAUSED.']);
  });

  test('a template of low quality or another category', async () => {
    const { database } = store;
    const score = (now: string, secondsAgo: number) =>
      report(
        'message_template_quality_update',
        { message_template_id: 5, message_template_name: 'cart', new_quality_score: now },
        secondsAgo,
      );
    const category = { message_template_id: 5, message_template_name: 'cart', previous_category: 'UTILITY' };
    await takeIn(
      database,
      score('RED', 80),
      report('template_category_update', { ...category, new_category: 'MARKETING' }),
    );
    expect(await reasons()).toEqual([
      'The template cart has dropped to the quality RED.',
      'The template cart is now MARKETING; it was UTILITY. Upstream bills it as such.',
    ]);
    const coming = { correct_category: 'UTILITY', new_category: 'MARKETING', category_update_timestamp: 1 };
    await takeIn(
      database,
      score('GREEN', 70),
      report('template_category_update', { ...category, previous_category: undefined, ...coming }, 50),
    );
    expect(await reasons()).toEqual([
      'The template cart is to become UTILITY; it is MARKETING. Upstream bills it as such.',
    ]);
    await execute(
      database,
      `update upstream_troubles set until = now() - interval '1 second' where until > now()`,
    );
    expect(await reasons()).toEqual([]);
  });

  test('a number that is flagged or may reach fewer customers', async () => {
    const { database } = store;
    await takeIn(database, quality('FLAGGED', 90), quality('DOWNGRADE', 80));
    expect(await reasons()).toEqual([
      'The messaging limit of 12025550100 was lowered to TIER_1K.',
      'The number 12025550100 is flagged: its quality is low.',
    ]);
    await takeIn(
      database,
      quality('UNFLAGGED', 70),
      quality('UPGRADE', 70),
      quality('THROUGHPUT_UPGRADE', 60),
    );
    expect(await reasons()).toEqual([]);
  });

  test('an account that violates a policy, is restricted or banned', async () => {
    const { database } = store;
    const account = (value: object, secondsAgo = 60) => report('account_update', value, secondsAgo);
    const ban = (state: string, secondsAgo: number) =>
      account({ event: 'DISABLED_UPDATE', ban_info: { waba_ban_state: state } }, secondsAgo);
    await takeIn(
      database,
      account({ event: 'ACCOUNT_VIOLATION', violation_info: { violation_type: 'ADULT' } }),
      account({
        event: 'ACCOUNT_RESTRICTION',
        restriction_info: [{ restriction_type: 'RESTRICTED_ADD_PHONE' }],
      }),
      ban('DISABLE', 80),
      account({ event: 'VERIFIED_ACCOUNT' }),
    );
    expect(await reasons()).toEqual([
      'The account is banned or will be: DISABLE.',
      'The account is restricted: RESTRICTED_ADD_PHONE.',
      'Upstream reports a violation of its policy: ADULT.',
    ]);
    await takeIn(database, ban('REINSTATE', 70));
    expect(await reasons()).toHaveLength(2);
  });

  test('a report of any other form harms nothing, and says nothing', async () => {
    const { database } = store;
    const fields = [
      'message_template_status_update',
      'message_template_quality_update',
      'template_category_update',
      'phone_number_quality_update',
      'account_update',
    ];
    const values = [
      null,
      1,
      'x',
      [],
      {},
      { event: {} },
      { event: 'ACCOUNT_RESTRICTION', restriction_info: 7 },
    ];
    const bodies = fields.flatMap((field) => values.map((value) => report(field, value as object)));
    const odd = { event: 'REJECTED', message_template_id: '\ud800\u0000x', reason: '\u0000\n'.repeat(500) };
    await takeIn(database, ...bodies, report('message_template_status_update', odd));
    expect(await query(database, `select 1 from inbox where state <> 'done'`)).toEqual([]);
    expect(await reasons()).toEqual([
      'The account is restricted.',
      expect.stringMatching(/^The template .{1,10} is REJECTED\.$/),
    ]);
  });

  test('is forgotten a month after it is over, and not while it lasts', async () => {
    const { database } = store;
    await takeIn(database, quality('FLAGGED', 90), template('PAUSED', 90), template('APPROVED', 80));
    await execute(database, `update upstream_troubles set reported_at = now() - interval '31 days'`);
    expect(await forgetOldProblems(database, 100)).toBe(1);
    expect(await query(database, 'select kind from upstream_troubles')).toEqual([
      { kind: 'number_restricted' },
    ]);
  });
});
