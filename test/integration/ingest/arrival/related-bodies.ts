import { type BodyFor, bodyOf } from './stored-state.ts';

/** Two bodies about one object, and what of `shownState` is right after both, in whatever way they arrive. */
export type Related = { name: string; first: BodyFor; second: BodyFor; right: readonly string[] };

const ASHA = '12025550143 US.10000000000000000143';

const COPY = 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQ1MzM4OTc2QTNEMkQzNTg4Q0RENgA=';
const OWN = 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQ1OEQxMDdENzUxQTdDODVCMzc4NwA=';
const ECHO = 'wamid.HBgLMTIwMjU1NTAxNDMVAgARGBJFNjFEMjNGRkU3MkYxQTI1MDYA';
const REFUSED = 'wamid.HBgLMTIwMjU1NTAxNDMVAgARGBJEMDU1QTYxRTYwNUUwRjhBQTgA';
const REPLY = 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBRGQjk5QjREQjY5MTNCNUUwNDVFOAA=';
const INBOUND_CALL = 'wacid.HBgLMTIwMjU1NTAxNDMVAgASGBQ4RUNEOTcxQ0Y4QjMyQTFCNjQxMQA=';
const OUTBOUND_CALL = 'wacid.HBgLMTIwMjU1NTAxNDMVAgASGBQyQkU0QTA2NEYyNTUxRkU5QTE5QgA=';
const VOICEMAIL = 'wacid.HBgLMTIwMjU1NTAxNDMVAgASGBRDNjNEN0RCNjRFQUU1NkIxQTA4OQA=';

const own = bodyOf('in_text_conversation_context');
const copy = bodyOf('fld_standby_inbound_text');
const passed = bodyOf('fld_messaging_handovers_control_passed');
const taken = bodyOf('fld_messaging_handovers_control_taken_no_sender', [
  '"recipient":{',
  '"sender":{"phone_number":"12025550143"},"recipient":{',
]);
const refused = bodyOf('st_failed_131050_opted_out');
const stopped = bodyOf('fld_user_preferences_stop_bsuid', [
  '{"user_id":"US.10000000000000000143","detail"',
  '{"wa_id":"12025550143","detail"',
]);
const resumed = bodyOf(
  'fld_user_preferences_stop_bsuid',
  ['{"user_id":"US.10000000000000000143","detail"', '{"wa_id":"12025550143","detail"'],
  ['"value":"stop","timestamp":1790000112', '"value":"resume","timestamp":1790000113'],
);
const pausedOffer = bodyOf(
  'fld_message_template_status_update_paused_auto_generated',
  ['1230000000000019', '1230000000000017'],
  ['auto_generated_123456', 'welcome_offer'],
);
const impending = bodyOf('fld_template_category_update_impending');
/** A day after it was announced. */
const completed = bodyOf(
  'fld_template_category_update_impending',
  ['"time":1790000000', '"time":1790000300'],
  [
    '"new_category":"UTILITY","correct_category":"MARKETING","category_update_timestamp":1790086400',
    '"previous_category":"UTILITY","new_category":"MARKETING"',
  ],
);

/** One body with the changes of both. */
function together(...bodies: readonly BodyFor[]): BodyFor {
  return (account) => {
    const entry = bodies.flatMap((body) => JSON.parse(body(account).toString()).entry);
    return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
  };
}

const message = (id: string, text: string) => [`event message ${id}`, `message inbound ${id} ${text}`];
const OFFER = 'The template welcome_offer (en_US)';

export const RELATED: readonly Related[] = [
  {
    name: 'a message to us, and the copy of it that another responder got',
    first: copy,
    second: bodyOf('in_text_conversation_context', [OWN, COPY], ['1790000080', '1790000070']),
    right: [
      `customer ${ASHA}`,
      ...message(COPY, 'text'),
      'event upstream.standby',
      'problem number_shared NUMBER',
    ],
  },
  {
    name: 'what another responder wrote, and that it was delivered',
    first: bodyOf('fld_standby_echo_text'),
    second: bodyOf('fld_standby_statuses'),
    right: [
      'customer 12025550143 ',
      'event upstream.standby',
      'event upstream.standby',
      `message outbound ${ECHO} text other_responder`,
      'problem number_shared NUMBER',
      `state ${ECHO} delivered`,
      'thread other',
    ],
  },
  {
    name: 'a copy of what a customer wrote, and a template that another responder sent to the user id',
    first: copy,
    second: bodyOf('fld_standby_echo_template_bsuid'),
    right: [
      `customer ${ASHA}`,
      'event upstream.standby',
      'event upstream.standby',
      `message inbound ${COPY} text other_responder`,
      'message outbound wamid.HBgLMTIwMjU1NTAxNDMVAgARGBIwMjc0NzUzQUMxNEM5OUI2NTYA template other_responder',
      'problem number_shared NUMBER',
      'thread other',
    ],
  },
  {
    name: 'a handover to us, and a later copy of a message to another responder',
    first: passed,
    second: copy,
    right: [
      `customer ${ASHA}`,
      'event upstream.messaging_handovers',
      'event upstream.standby',
      `message inbound ${COPY} text other_responder`,
      'problem number_shared NUMBER',
      'thread other',
    ],
  },
  {
    name: 'a handover to us, and a later message to us',
    first: passed,
    second: own,
    right: [
      'customer 12025550143 ',
      'event upstream.messaging_handovers',
      ...message(OWN, 'text'),
      'thread us',
    ],
  },
  {
    name: 'a handover to us, and a later one from us',
    first: passed,
    second: taken,
    right: [
      'customer 12025550143 ',
      'event upstream.messaging_handovers',
      'event upstream.messaging_handovers',
      'thread other escalation',
    ],
  },
  {
    name: 'a handover with roles, and a later one in the form of before',
    first: passed,
    second: bodyOf('fld_messaging_handovers_deprecated_app_ids'),
    right: [
      'customer 12025550143 ',
      'event upstream.messaging_handovers',
      'event upstream.messaging_handovers',
      'thread us',
    ],
  },
  {
    name: 'a handover from us, and one without a customer',
    first: taken,
    second: bodyOf('fld_messaging_handovers_control_taken_no_sender'),
    right: [
      'customer 12025550143 ',
      'event upstream.messaging_handovers',
      'event upstream.messaging_handovers',
      'thread other escalation',
    ],
  },
  {
    name: 'the beginning and the end of a call of a customer',
    first: bodyOf('call_connect_user_initiated'),
    second: bodyOf('call_terminate_completed_mixed_case'),
    right: [
      `customer ${ASHA}`,
      'event upstream.calls',
      'event upstream.calls',
      `message inbound call:${INBOUND_CALL} call completed 120`,
    ],
  },
  {
    name: 'the beginning of a call of ours with from and to the wrong way round, and that it rings',
    first: bodyOf('call_connect_business_initiated_swapped'),
    second: bodyOf('call_status_ringing'),
    right: [
      `customer ${ASHA}`,
      'event upstream.calls',
      'event upstream.calls',
      `message outbound call:${OUTBOUND_CALL} call ringing`,
    ],
  },
  {
    name: 'the end of a call, and a voicemail that has its id',
    first: bodyOf('call_terminate_completed_mixed_case'),
    second: bodyOf('in_audio_voicemail_wacid', [VOICEMAIL, INBOUND_CALL]),
    right: [
      `customer ${ASHA}`,
      ...message(INBOUND_CALL, 'audio'),
      'event upstream.calls',
      `message inbound call:${INBOUND_CALL} call completed 120`,
    ],
  },
  {
    name: 'a refusal for an opt-out, and the opt-out',
    first: refused,
    second: stopped,
    right: [
      'customer 12025550143 ',
      `event status ${REFUSED}`,
      'event upstream.user_preferences',
      'opt-out marketing upstream since 111 s',
      `state ${REFUSED} failed`,
    ],
  },
  {
    name: 'an opt-out, and its end',
    first: stopped,
    second: resumed,
    right: ['customer 12025550143 ', 'event upstream.user_preferences', 'event upstream.user_preferences'],
  },
  {
    name: 'a refusal for an opt-out, and the end of it',
    first: refused,
    second: resumed,
    right: [
      'customer 12025550143 ',
      `event status ${REFUSED}`,
      'event upstream.user_preferences',
      `state ${REFUSED} failed`,
    ],
  },
  {
    name: 'that a message was sent, and that it failed for an opt-out',
    first: bodyOf(
      'st_failed_131050_opted_out',
      ['"status":"failed","timestamp":"1790000111"', '"status":"sent","timestamp":"1790000110"'],
      ['"errors"', '"was"'],
    ),
    second: refused,
    right: [
      'customer 12025550143 ',
      `event status ${REFUSED}`,
      `event status ${REFUSED}`,
      'opt-out marketing error_131050 since 111 s',
      `state ${REFUSED} failed`,
    ],
  },
  {
    name: 'a template that is paused, and its change of category',
    first: pausedOffer,
    second: completed,
    right: [
      'event upstream.message_template_status_update',
      'event upstream.template_category_update',
      `problem template_stopped category of 1230000000000017 ${OFFER} is now MARKETING; it was UTILITY. Upstream bills it as such.`,
      `problem template_stopped status of 1230000000000017 ${OFFER.replace('_US', '-US')} is PAUSED.`,
      'template welcome_offer en_US PAUSED MARKETING',
    ],
  },
  {
    name: 'a change of category that is announced, and that it is completed',
    first: impending,
    second: completed,
    right: [
      'event upstream.template_category_update',
      'event upstream.template_category_update',
      `problem template_stopped category of 1230000000000017 ${OFFER} is now MARKETING; it was UTILITY. Upstream bills it as such.`,
      'template welcome_offer en_US  MARKETING',
    ],
  },
  {
    name: 'a change of category that is announced, and that the template is paused',
    first: impending,
    second: pausedOffer,
    right: [
      'event upstream.message_template_status_update',
      'event upstream.template_category_update',
      `problem template_stopped category of 1230000000000017 ${OFFER} is to become MARKETING; it is UTILITY. Upstream bills it as such.`,
      `problem template_stopped status of 1230000000000017 ${OFFER.replace('_US', '-US')} is PAUSED.`,
      'template welcome_offer en_US PAUSED ',
    ],
  },
  {
    name: 'a warning about Direct Send, and a restriction of calls at the same time',
    first: bodyOf('fld_account_update_direct_send_warning'),
    second: bodyOf('fld_account_update_calling_restriction_entry_zero'),
    right: [
      'event upstream.account_update',
      'event upstream.account_update',
      'problem account_restricted restriction RESTRICTED_USER_INITIATED_CALLING_CALL_BUTTON_HIDDEN The account is restricted: RESTRICTED_USER_INITIATED_CALLING_CALL_BUTTON_HIDDEN.',
      'problem account_restricted violation DIRECT_SEND_UTILITY_CATEGORY_ABUSE_WARN Upstream reports a violation of its policy: DIRECT_SEND_UTILITY_CATEGORY_ABUSE_WARN.',
    ],
  },
  {
    name: 'a number that leaves the provider, and an account that is off',
    first: bodyOf('fld_account_update_partner_removed_coexistence'),
    second: bodyOf('fld_account_update_offboarded'),
    right: ['event upstream.account_update', 'event upstream.account_update'],
  },
  {
    name: 'a request to join a group, and a change of its settings that failed in part',
    first: bodyOf('fld_group_participants_join_request_bsuid'),
    second: bodyOf('fld_group_settings_update_partial_fail'),
    right: [
      `customer ${ASHA}`,
      'event upstream.group_participants_update',
      'event upstream.group_settings_update',
      `member ${ASHA} requested`,
    ],
  },
  {
    name: 'a request to join a group, and a status of a message to it',
    first: bodyOf('fld_group_participants_join_request_bsuid'),
    second: bodyOf('st_read_group_pricing'),
    right: [
      `customer ${ASHA}`,
      'event status wamid.HBgLMTIwMjU1NTAxNDMVAgARGBI3ODcyNkYxRjUyOUM1RTMzN0MA',
      'event upstream.group_participants_update',
      `member ${ASHA} requested`,
      'state wamid.HBgLMTIwMjU1NTAxNDMVAgARGBI3ODcyNkYxRjUyOUM1RTMzN0MA read',
    ],
  },
  {
    name: 'a reply of a customer known by user id, and a copy that names the phone too',
    first: bodyOf('in_text_reply_context_bsuid'),
    second: copy,
    right: [
      `customer ${ASHA}`,
      ...message(REPLY, 'text'),
      'event upstream.standby',
      `message inbound ${COPY} text other_responder`,
      'problem number_shared NUMBER',
      'thread us',
    ],
  },
  {
    name: 'a handover from us with a later message to us, and an earlier one',
    first: together(
      taken,
      bodyOf('in_text_conversation_context', [OWN, REPLY], ['1790000080', '1790000062']),
    ),
    second: bodyOf('in_text_conversation_context', ['1790000080', '1790000060']),
    right: [
      'customer 12025550143 ',
      'event upstream.messaging_handovers',
      ...message(OWN, 'text'),
      ...message(REPLY, 'text'),
      'thread us',
    ],
  },
  {
    name: 'clicks in marketing messages, which name nobody',
    first: bodyOf('act_marketing_link_click'),
    second: bodyOf('act_unknown_action_uppercase'),
    right: ['event upstream.messages', 'event upstream.messages'],
  },
];
