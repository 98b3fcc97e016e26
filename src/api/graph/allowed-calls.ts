/** What a path begins with: an object of the key's own WABA, as far as that is known without asking upstream. */
export type OwnObject = (typeof OWN_OBJECTS)[number];

const OWN_OBJECTS = ['waba', 'number', 'template', 'flow'] as const;

export type Method = 'GET' | 'POST' | 'DELETE';

type Edge = {
  methods: readonly Method[];
  query: readonly string[];
  /** It talks to a customer, as a message does: a key that may send may do it. */
  isSending?: true;
};

const PAGE = ['limit', 'before', 'after'];
const FIELDS = ['fields'];
const LIST = [...FIELDS, ...PAGE];
const PERIOD = [...PAGE, 'start', 'end', 'granularity'];
const PRICING = [
  ...['phone_numbers', 'country_codes', 'metric_types', 'pricing_types', 'pricing_categories', 'dimensions'],
];
const EVERY: readonly Method[] = ['GET', 'POST', 'DELETE'];
const READ: readonly Method[] = ['GET'];
const CHANGE: readonly Method[] = ['GET', 'POST'];

const edge = (methods: readonly Method[], query: readonly string[] = FIELDS): Edge => ({ methods, query });

/**
 * Every call that is passed on: by the object that the path begins with and the rest of the path (empty: the object
 * itself). What is not here is refused: subscriptions and callbacks, registration, users, businesses, and other edges
 * behind which objects of others may be.
 */
export const ALLOWED_CALLS: Readonly<Record<OwnObject, Readonly<Record<string, Edge>>>> = {
  waba: {
    '': edge(READ),
    phone_numbers: edge(READ, LIST),
    subscribed_apps: edge(READ, []),
    message_templates: edge(EVERY, [
      ...LIST,
      ...[
        'name',
        'status',
        'category',
        'language',
        'content',
        'name_or_content',
        'quality_score',
        'hsm_id',
        'source',
        'summary',
      ],
    ]),
    message_template_previews: edge(READ, [
      'category',
      'languages',
      'language',
      'add_security_recommendation',
    ]),
    template_analytics: edge(READ, [
      ...PERIOD,
      ...['template_ids', 'metric_types', 'product_type', 'use_waba_timezone'],
    ]),
    template_group_analytics: edge(READ, [...PERIOD, 'template_group_ids', 'metric_types', 'product_type']),
    pricing_analytics: edge(READ, [...PERIOD, ...PRICING]),
    flows: edge(CHANGE, LIST),
  },
  number: {
    '': edge(READ),
    whatsapp_business_profile: edge(CHANGE),
    message_qrdls: edge(EVERY, [...LIST, 'code', 'prefilled_message', 'generate_qr_image']),
    'message_qrdls/*': edge(['GET', 'DELETE']),
    block_users: edge(EVERY, LIST),
    conversational_automation: edge(CHANGE),
    whatsapp_commerce_settings: edge(CHANGE, [...FIELDS, 'is_cart_enabled', 'is_catalog_visible']),
    whatsapp_business_encryption: edge(CHANGE),
    calls: { ...edge(['POST'], []), isSending: true },
    call_permissions: edge(READ, ['user_wa_id', 'recipient']),
    // Without what would show the password of a SIP server.
    settings: edge(CHANGE, []),
    groups: edge(CHANGE, PAGE),
    username: edge(EVERY, []),
    username_suggestions: edge(READ, []),
    routing_roles: edge(READ, []),
  },
  template: { '': edge(CHANGE) },
  flow: {
    '': edge(EVERY),
    assets: edge(CHANGE, LIST),
    publish: edge(['POST'], []),
    deprecate: edge(['POST'], []),
  },
};

/** Members that `fields` may name, the first in place of none; what leads to another object, or says where webhooks go, is none of them. */
const OBJECT_FIELDS: Readonly<Record<OwnObject, string>> = {
  waba: `id name currency timezone_id message_template_namespace account_review_status country status ownership_type
    business_verification_status health_status is_enabled_for_insights marketing_messages_lite_api_status
    marketing_messages_onboarding_status pricing_analytics`,
  number: `id display_phone_number verified_name quality_rating quality_score code_verification_status status
    name_status new_name_status account_mode platform_type host_platform messaging_limit_tier throughput
    whatsapp_business_manager_messaging_limit country_code country_dial_code is_official_business_account
    is_pin_enabled is_on_biz_app last_onboarded_time username health_status conversational_automation
    search_visibility eligibility_for_api_business_global_search`,
  template: `id name status category language components quality_score rejected_reason previous_category
    correct_category sub_category library_template_name parameter_format message_send_ttl_seconds created_time
    last_updated_time allow_category_change cta_url_link_tracking_opted_out degrees_of_freedom_spec bid_spec`,
  flow: `id name status categories validation_errors json_version data_api_version data_channel_uri endpoint_uri
    preview health_status`,
};

/** Of edges whose entries are no separate objects. */
const EDGE_FIELDS: Readonly<Record<string, string>> = {
  whatsapp_business_profile:
    'about address description email messaging_product profile_picture_url vertical websites',
  message_qrdls: 'code prefilled_message deep_link_url qr_image_url creation_time',
  'message_qrdls/*': 'code prefilled_message deep_link_url qr_image_url creation_time',
  block_users: 'wa_id user_id messaging_product',
  conversational_automation: 'id enable_welcome_message prompts commands',
  whatsapp_commerce_settings: 'id is_cart_enabled is_catalog_visible',
  whatsapp_business_encryption: 'business_public_key business_public_key_signature_status',
  assets: 'name asset_type download_url',
};

const OF_LIST: Readonly<Record<string, OwnObject>> = {
  phone_numbers: 'number',
  message_templates: 'template',
  flows: 'flow',
};

/** What upstream computes for a field; the arguments are plain words and numbers, or lists of these. */
const COMPUTED =
  /^(?:pricing_analytics(?:\.(?:start|end)\(\d{1,12}\)|\.granularity\([A-Z_]{1,32}\)|\.(?:phone_numbers|country_codes|metric_types|pricing_types|pricing_categories|dimensions)\(\[[\w",+ ]{0,500}\]\)){1,12}|preview\.invalidate\((?:true|false)\)|qr_image_url\.format\((?:SVG|PNG)\)|health_status\.phone_number\(\d{1,32}\))$/;

export function allowedCall(object: OwnObject, method: string, rest: readonly string[]): Edge | null {
  const [name = '', part] = rest;
  if (rest.length > 2 || (part !== undefined && !/^[A-Za-z0-9_-]{1,64}$/.test(part))) return null;
  const key = part === undefined ? name : `${name}/*`;
  const calls = ALLOWED_CALLS[object];
  const call = Object.hasOwn(calls, key) ? calls[key] : undefined;
  return call?.methods.some((allowed) => allowed === method) ? call : null;
}

/** Whether the call is passed on for any kind of object. */
export function isPassedForSome(method: string, rest: readonly string[]): boolean {
  return OWN_OBJECTS.some((object) => allowedCall(object, method, rest) !== null);
}

const PLAIN = /^[a-z0-9_]+$/;

/**
 * The fields that are asked of upstream. Clients ask for all that they know: names that are not passed on are left out, as
 * upstream leaves out what a token has no right to. Null: something else than names, which may lead to other objects.
 */
export function passedFields(object: OwnObject, rest: readonly string[], fields: string): string | null {
  const key = rest.length > 1 ? `${rest[0]}/*` : (rest[0] ?? '');
  const list = EDGE_FIELDS[key] ?? OBJECT_FIELDS[OF_LIST[key] ?? object];
  const known = new Set(list.split(/\s+/));
  const asked = fieldNames(fields);
  const isPassed = (field: string) => known.has(field) || isComputed(field, known);
  if (asked.some((field) => field !== '' && !PLAIN.test(field) && !isPassed(field))) return null;
  return asked.filter(isPassed).join(',') || (list.split(/\s+/)[0] ?? '');
}

/** Separated by commas, but for those between the parentheses of what is computed. */
function fieldNames(fields: string): string[] {
  const names: string[] = [];
  let isOpen = false;
  let start = 0;
  for (let at = 0; at < fields.length; at += 1) {
    if (fields[at] === '(' || fields[at] === ')') isOpen = fields[at] === '(';
    if (fields[at] !== ',' || isOpen) continue;
    names.push(fields.slice(start, at).trim());
    start = at + 1;
  }
  return [...names, fields.slice(start).trim()];
}

function isComputed(field: string, known: ReadonlySet<string>): boolean {
  return COMPUTED.test(field) && known.has(field.slice(0, field.indexOf('.')));
}
