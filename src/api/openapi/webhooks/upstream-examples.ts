import { serializeEvent } from '../../../engine/deliveries/envelope.ts';
import { splitUpstreamBody } from '../../../ingest/split/upstream-items.ts';
import { upstreamTypeOf } from '../../../platform/event-type.ts';
import type { UpstreamField } from '../../../platform/upstream-fields.ts';

const METADATA = { display_phone_number: '12025550100', phone_number_id: '800000000000111' };
const VALUE = { messaging_product: 'whatsapp', metadata: METADATA };
const TEMPLATE = {
  message_template_id: 500000000000001,
  message_template_name: 'abandoned_cart',
  message_template_language: 'en',
};
const GROUP = { group_id: 'Y2FwaV9ncm91cDoxMjAyNTU1MDEwMDoxMjAwMDAwMDAwMDAwMDAwMDAZD' };
const NUMBER = { display_phone_number: '12025550100' };
const USER = { wa_id: '12025550143', user_id: 'US.10000000000000000143' };
const OTHER_USER_ID = 'US.10000000000000000199';

/**
 * The form of what upstream reports in each field. Upstream's pages that it is after are below
 * developers.facebook.com/documentation/business-messaging/whatsapp, read in November 2026: `calls` after
 * calling/user-initiated-calls and calling/reference, `flows` after flows/guides/flowswebhooks, `group_…` after
 * groups/webhooks, `payment_configuration_update` after payments/payments-in/onboarding-apis, all others after
 * webhooks/reference/<field>. `user_id` beside `wa_id` is after business-scoped-user-ids. The values are made up.
 */
const UPSTREAM_VALUES: Readonly<Record<UpstreamField, Record<string, unknown>>> = {
  account_alerts: {
    entity_type: 'BUSINESS',
    entity_id: '700000000000001',
    alert_info: {
      alert_severity: 'INFORMATIONAL',
      alert_status: 'NONE',
      alert_type: 'OBA_APPROVED',
      alert_description: 'Your request for an official business account was approved.',
    },
  },
  account_review_update: { decision: 'APPROVED' },
  account_settings_update: {
    messaging_product: 'whatsapp',
    timestamp: '1790000000',
    type: 'PHONE_NUMBER_SETTINGS',
    phone_number_settings: { phone_number_id: METADATA.phone_number_id, calling: { status: 'ENABLED' } },
  },
  account_update: { event: 'ACCOUNT_VIOLATION', violation_info: { violation_type: 'ADULT' } },
  automatic_events: {
    ...VALUE,
    automatic_events: [
      { id: 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQz', event_name: 'LeadSubmitted', timestamp: 1790000000 },
    ],
  },
  business_capability_update: { max_daily_conversations_per_business: 2000, max_phone_numbers_per_waba: 25 },
  business_username_updates: { ...NUMBER, username: 'fixture.store', status: 'approved' },
  calls: {
    ...VALUE,
    calls: [
      {
        id: 'wacid.HBgLMTIwMjU1NTAxNDMVAgASGCAzODg1NTE5',
        from: '12025550143',
        to: '12025550100',
        event: 'connect',
        direction: 'USER_INITIATED',
        timestamp: '1790000000',
        session: { sdp_type: 'offer', sdp: 'v=0 …' },
      },
    ],
  },
  flows: {
    event: 'FLOW_STATUS_CHANGE',
    message: 'Flow Booking changed status from DRAFT to PUBLISHED',
    flow_id: '600000000000001',
    old_status: 'DRAFT',
    new_status: 'PUBLISHED',
  },
  group_lifecycle_update: {
    ...VALUE,
    groups: [{ ...GROUP, type: 'group_create', timestamp: '1790000000', subject: 'Project team' }],
  },
  group_participants_update: {
    ...VALUE,
    groups: [
      {
        ...GROUP,
        type: 'group_participants_add',
        timestamp: '1790000000',
        reason: 'invite_link',
        added_participants: [{ wa_id: USER.wa_id }],
      },
    ],
  },
  group_settings_update: {
    ...VALUE,
    groups: [
      {
        ...GROUP,
        type: 'group_settings_update',
        timestamp: '1790000000',
        group_subject: { text: 'Project team', update_successful: true },
      },
    ],
  },
  group_status_update: {
    ...VALUE,
    groups: [{ ...GROUP, type: 'group_suspend', timestamp: '1790000000' }],
  },
  history: {
    ...VALUE,
    history: [
      {
        metadata: { phase: 0, chunk_order: 1, progress: 55 },
        threads: [
          {
            id: '12025550143',
            messages: [
              {
                from: '12025550143',
                id: 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQQ==',
                timestamp: '1789990000',
                type: 'text',
                text: { body: 'Are you open today?' },
                history_context: { status: 'READ' },
              },
            ],
          },
        ],
      },
    ],
  },
  message_template_components_update: {
    ...TEMPLATE,
    message_template_title: 'Your cart',
    message_template_element: 'You left something in your cart.',
  },
  message_template_quality_update: {
    ...TEMPLATE,
    previous_quality_score: 'GREEN',
    new_quality_score: 'YELLOW',
  },
  message_template_status_update: {
    event: 'REJECTED',
    ...TEMPLATE,
    reason: 'INVALID_FORMAT',
    message_template_category: 'MARKETING',
  },
  messages: {
    ...VALUE,
    user_actions: [
      {
        action_type: 'marketing_messages_link_click',
        timestamp: '1790000000',
        marketing_messages_link_click_data: {
          click_component: 'cta',
          product_id: 'sku-17',
          click_id: 'clk_0017',
          tracking_token: 'tok_0017',
        },
      },
    ],
  },
  messaging_handovers: {
    messaging_product: 'whatsapp',
    sender: { phone_number: '12025550143' },
    recipient: METADATA,
    type: 'control_passed',
    timestamp: '1790000000',
    control_passed: {
      previous_owner_role: 'ai_agent',
      new_owner_role: 'escalation',
      metadata: 'The customer asked for a person',
    },
  },
  partner_solutions: {
    event: 'SOLUTION_CREATED',
    solution_id: '650000000000001',
    solution_status: 'INITIATED',
  },
  payment_configuration_update: {
    configuration_name: 'razorpay-prod',
    provider_name: 'razorpay',
    provider_mid: 'acc_FIXTURE',
    status: 'Needs Testing',
    created_timestamp: 1789999000,
    updated_timestamp: 1790000000,
  },
  phone_number_name_update: {
    ...NUMBER,
    decision: 'APPROVED',
    requested_verified_name: 'Asha Shop',
    rejection_reason: null,
  },
  phone_number_quality_update: {
    ...NUMBER,
    event: 'THROUGHPUT_UPGRADE',
    max_daily_conversations_per_business: 'TIER_UNLIMITED',
  },
  security: { ...NUMBER, event: 'PIN_RESET_REQUEST', requester: '100000000000001' },
  smb_app_state_sync: {
    ...VALUE,
    state_sync: [
      {
        type: 'contact',
        contact: { full_name: 'Asha Tester', first_name: 'Asha', phone_number: '12025550143' },
        action: 'add',
        metadata: { timestamp: '1790000000' },
      },
    ],
  },
  smb_message_echoes: {
    ...VALUE,
    message_echoes: [
      {
        from: '12025550100',
        to: '12025550143',
        id: 'wamid.HBgLMTIwMjU1NTAxNDMVAgARGBIwOTJDNzlFOEY4MEU1NTlFNDAA',
        timestamp: '1790000000',
        type: 'text',
        text: { body: 'Sent from the phone app' },
      },
    ],
  },
  standby: {
    ...VALUE,
    standby: {
      contacts: [{ profile: { name: 'Asha Tester' }, wa_id: USER.wa_id, user_id: USER.user_id }],
      messages: [
        {
          from: USER.wa_id,
          from_user_id: USER.user_id,
          id: 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQg==',
          timestamp: '1790000000',
          type: 'text',
          text: { body: 'Where is my parcel?' },
        },
      ],
    },
  },
  template_category_update: { ...TEMPLATE, previous_category: 'UTILITY', new_category: 'MARKETING' },
  template_correct_category_detection: { ...TEMPLATE, category: 'UTILITY', correct_category: 'MARKETING' },
  user_id_update: {
    ...VALUE,
    contacts: [{ profile: { name: 'Asha Tester' }, wa_id: USER.wa_id, user_id: OTHER_USER_ID }],
    user_id_update: [
      {
        wa_id: USER.wa_id,
        detail: 'User Asha Tester has another user id',
        user_id: { previous: USER.user_id, current: OTHER_USER_ID },
        timestamp: 1790000000,
      },
    ],
  },
  user_preferences: {
    ...VALUE,
    contacts: [{ profile: { name: 'Asha Tester' }, wa_id: USER.wa_id, user_id: USER.user_id }],
    user_preferences: [
      {
        ...USER,
        detail: 'User requested to stop marketing messages',
        category: 'marketing_messages',
        value: 'stop',
        timestamp: 1790000000,
      },
    ],
  },
};

export function upstreamValue(field: UpstreamField): Record<string, unknown> {
  return UPSTREAM_VALUES[field];
}

export function upstreamExample(field: UpstreamField): { eventId: string } {
  const changes = [{ field, value: UPSTREAM_VALUES[field] }];
  const body = { entry: [{ id: '900000000000101', time: 1_790_000_000, changes }] };
  const [item] = splitUpstreamBody(Buffer.from(JSON.stringify(body))).items;
  if (item === undefined) throw new Error(`the example of ${field} is no item`);
  const { wabaId, phoneNumberId, eventId, eventData: dataJson } = item;
  const occurredAt = new Date('2026-11-21T09:30:00.123Z');
  const members = { wabaId, phoneNumberId, eventId, dataJson, occurredAt, userId: 1 };
  return JSON.parse(serializeEvent({ eventType: upstreamTypeOf(field), ...members }));
}
