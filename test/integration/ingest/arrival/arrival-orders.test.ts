import { beforeAll, expect, test } from 'vitest';
import { takeIn } from '../../../support/take-in.ts';
import { databaseOfFile } from '../../../support/test-database.ts';
import { RELATED } from './related-bodies.ts';
import { shownState } from './shown-state.ts';
import { type Account, addAccounts, type BodyFor, bodyOf, storedStates } from './stored-state.ts';

/** What came with the platform of 2026. */
const BODIES = [
  'act_marketing_link_click',
  'act_unknown_action_uppercase',
  'call_connect_business_initiated_swapped',
  'call_connect_user_initiated',
  'call_status_ringing',
  'call_terminate_completed_mixed_case',
  'fld_account_settings_update_calling',
  'fld_account_update_calling_restriction_entry_zero',
  'fld_account_update_direct_send_warning',
  'fld_account_update_offboarded',
  'fld_account_update_partner_removed_coexistence',
  'fld_automatic_events_purchase',
  'fld_group_participants_join_request_bsuid',
  'fld_group_settings_update_partial_fail',
  'fld_message_template_status_update_paused_auto_generated',
  'fld_messaging_handovers_control_passed',
  'fld_messaging_handovers_control_taken_no_sender',
  'fld_messaging_handovers_deprecated_app_ids',
  'fld_standby_echo_template_bsuid',
  'fld_standby_echo_text',
  'fld_standby_inbound_text',
  'fld_standby_statuses',
  'fld_template_category_update_impending',
  'fld_template_correct_category_detection',
  'fld_user_preferences_stop_bsuid',
  'in_audio_voicemail_wacid',
  'in_text_conversation_context',
  'in_text_reply_context_bsuid',
  'st_failed_131050_opted_out',
  'st_read_group_pricing',
];

type Pair = { name: string; first: BodyFor; second: BodyFor };

/** Every two of the bodies, and each with itself, as upstream repeats it. */
const PAIRS: readonly Pair[] = [
  ...RELATED,
  ...BODIES.flatMap((first, index) =>
    BODIES.slice(index).map((second) => ({
      name: `${first}, ${second}`,
      first: bodyOf(first),
      second: bodyOf(second),
    })),
  ),
];

/** In both orders, apart; what is about one object in one turn of intake too. */
function waysOf(pair: Pair) {
  const apart = [false, true].map((isTurned) => ({ isApart: true, isTurned }));
  return 'right' in pair ? [...apart, ...apart.map((way) => ({ ...way, isApart: false }))] : apart;
}

const store = databaseOfFile();

/** By pair, what it left in each of the ways. */
const left = new Map<Pair, { account: Account; state: string[] }[]>();

/** Every pair and way has its own account; all of them are taken in together. */
beforeAll(async () => {
  const { database } = store;
  const ways = PAIRS.flatMap((pair) => waysOf(pair).map((way) => ({ pair, ...way })));
  const accounts = await addAccounts(database, ways.length);
  const cases = accounts.flatMap((account, index) =>
    ways.slice(index, index + 1).map(({ pair, isApart, isTurned }) => {
      const bodies = [pair.first(account), pair.second(account)];
      return { pair, isApart, account, bodies: isTurned ? bodies.toReversed() : bodies };
    }),
  );
  const [apart, together] = [cases.filter(({ isApart }) => isApart), cases.filter(({ isApart }) => !isApart)];
  await takeIn(database, ...apart.flatMap(({ bodies }) => bodies.slice(0, 1)));
  await takeIn(database, ...apart.flatMap(({ bodies }) => bodies.slice(1)));
  await takeIn(database, ...together.flatMap(({ bodies }) => bodies));
  const states = await storedStates(database, accounts);
  for (const { pair, account } of cases) {
    const state = states.get(account) ?? [];
    left.set(pair, [...(left.get(pair) ?? []), { account, state }]);
  }
});

test('every two bodies leave the same, whichever comes first, apart and in one turn', () => {
  const differing = PAIRS.flatMap((pair) => {
    const [one, ...others] = (left.get(pair) ?? []).map(({ state }) => state);
    expect([pair.name, others.length + 1]).toEqual([pair.name, waysOf(pair).length]);
    return others.flatMap((other) => {
      if (JSON.stringify(other) === JSON.stringify(one)) return [];
      const only = (some: string[] = [], rest: string[] = []) => some.filter((line) => !rest.includes(line));
      return [{ pair: pair.name, first: only(one, other), other: only(other, one) }];
    });
  });
  expect(differing).toEqual([]);
});

test.each(RELATED)('$name: the outcome is right', async (pair) => {
  for (const { account, state } of left.get(pair) ?? []) {
    expect(await shownState(store.database, account, state)).toEqual(pair.right.toSorted());
  }
  expect(left.get(pair)).toHaveLength(4);
});
