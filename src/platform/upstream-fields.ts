/**
 * The fields of upstream's webhooks that are known, by what each reports; of `messages` there is an event only for values without messages and statuses. Any other field can be asked for
 * by its name too: https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks lists them.
 */
export const UPSTREAM_FIELDS = {
  account_alerts: 'An alert about the account, a number or the business',
  account_review_update: 'The account was reviewed',
  account_settings_update: 'The settings of a number changed, such as those of calls',
  account_update: 'The account was restricted, banned, verified or connected, or violated a policy',
  automatic_events: 'Upstream recognized a lead or a purchase in a chat',
  business_capability_update: 'A limit of the business changed',
  business_username_updates: 'The username of a number was approved, reserved or deleted',
  calls: 'A call began, rang, was accepted or ended',
  flows: 'A flow or its endpoint changed its state',
  group_lifecycle_update: 'A group was created or deleted',
  group_participants_update: 'A participant joined or left a group',
  group_settings_update: 'The settings of a group changed',
  group_status_update: 'A group was suspended or released',
  history: 'Earlier messages of a number that also uses the WhatsApp Business app',
  messages: 'Something else than a message or status: a click in a marketing message, an error',
  messaging_handovers: 'A conversation was passed to your app, or taken from it, by another responder',
  message_template_components_update: 'The content of a template changed',
  message_template_quality_update: 'The quality of a template changed',
  message_template_status_update: 'A template was approved, rejected, paused or disabled',
  partner_solutions: 'A partner solution changed',
  payment_configuration_update: 'A payment configuration changed',
  phone_number_name_update: 'The name of a number was approved or rejected',
  phone_number_quality_update: 'The quality or a limit of a number changed',
  security: 'The PIN of a number was changed or asked for',
  smb_app_state_sync: 'A contact changed in the WhatsApp Business app',
  smb_message_echoes: 'The business wrote from the WhatsApp Business app',
  standby: 'A copy of a message in a conversation that another responder has',
  template_category_update: 'The category of a template changes or was changed',
  template_correct_category_detection:
    'The content of a message without a template (Direct Send) is of another category',
  user_id_update: 'A customer got another user id',
  user_preferences: 'A customer stopped or resumed marketing messages',
} as const;

/** The fields that every app is to subscribe to, and what happens without them. Of the others tenants, or numbers in the app, have use. */
export const NEEDED_FIELDS: readonly { fields: readonly UpstreamField[]; without: string }[] = [
  { fields: ['messages'], without: 'no messages and statuses arrive' },
  {
    fields: ['phone_number_quality_update', 'phone_number_name_update', 'account_update'],
    without: 'changes of numbers are noticed once a day, and restrictions of accounts never',
  },
  {
    fields: [
      'message_template_status_update',
      'message_template_quality_update',
      'message_template_components_update',
      'template_category_update',
    ],
    without: 'changes of message templates are noticed once a day',
  },
  { fields: ['user_preferences'], without: 'it is not noticed who wants no marketing messages' },
  {
    fields: ['standby', 'messaging_handovers'],
    without: 'it is not noticed when another responder shares a number',
  },
];

export type UpstreamField = keyof typeof UPSTREAM_FIELDS;

export const KNOWN_FIELDS = Object.keys(UPSTREAM_FIELDS) as UpstreamField[];
