import { Type } from 'typebox';
import {
  ALL_UPSTREAM,
  EVENT_TYPES,
  type EventType,
  PREFERENCE,
  upstreamTypeOf,
  WINDOW_CLOSING,
  WINDOW_CLOSING_MINUTES,
} from '../../platform/event-type.ts';
import { EventTypeSchema } from '../../platform/event-type-schema.ts';
import { checkDescription } from '../../platform/request-input.ts';
import { KNOWN_FIELDS } from '../../platform/upstream-fields.ts';
import { BUFFER_SETTINGS } from './buffer-settings.ts';
import { CONDITION_FORMS, checkFilter, FILTER_LIMITS } from './event-filter.ts';
import {
  choiceSetting,
  linesSetting,
  numberSetting,
  numbersSetting,
  type Section,
  type Setting,
  textSetting,
  textsSetting,
  waitsText,
  wholeNumber,
} from './setting.ts';
import {
  checkEventTypes,
  checkPhoneNumberIds,
  checkRetrySchedule,
  DAY_SECONDS,
  MAX_RETRIES,
} from './setting-checks.ts';
import { WORKFLOW_MODES } from './workflow-mode.ts';

const namedAsThey = (types: readonly EventType[]) => Object.fromEntries(types.map((type) => [type, type]));

const CORE_TYPES = namedAsThey(
  EVENT_TYPES.filter((type) => !['test', WINDOW_CLOSING, PREFERENCE].includes(type)),
);
const OTHER_TYPES = {
  summary: 'Only if selected: the end of the service window, opt-outs, other fields of the upstream platform',
  choices: namedAsThey([WINDOW_CLOSING, PREFERENCE, ALL_UPSTREAM, ...KNOWN_FIELDS.map(upstreamTypeOf)]),
};

/**
 * Settings with a default, in the order of the API. The schemas of the API, the form and the page of the portal, the options of the
 * commands and the statements of the store are made of this table: a new setting is an entry here, a column in schema.sql, and the place
 * that heeds it. The URL and the headers, which have their own rules, stand beside it.
 */
export const SETTINGS = {
  description: textSetting({
    section: 'where',
    example: 'shop server',
    check: (text) => checkDescription('The description', text),
    portal: {
      field: 'description',
      label: 'Description',
      hint: 'For example “orders to the warehouse”.',
      maxLength: 200,
    },
    command: { flags: '--description <text>', help: 'its purpose', label: 'description' },
  }),
  eventTypes: textsSetting<EventType>({
    section: 'what',
    item: EventTypeSchema,
    maxItems: 100,
    example: ['message', 'status'],
    check: checkEventTypes,
    portal: {
      field: 'eventTypes',
      label: 'Event types',
      hint: 'None selected: all of these, future ones included.',
      choices: CORE_TYPES,
      more: OTHER_TYPES,
      byDefault: 'all but window.closing, preference and upstream.*',
    },
    command: {
      flags: '--events <types>',
      help: 'event types, comma separated; also window.closing, preference, upstream.<field> or upstream.* (default: all but these, also those to come)',
      label: 'events',
      byDefault: 'all but window.closing, preference and upstream.*',
    },
  }),
  phoneNumberIds: textsSetting({
    section: 'what',
    item: Type.String(),
    maxItems: 1_000,
    check: checkPhoneNumberIds,
    portal: {
      field: 'phoneNumberIds',
      label: 'Phone numbers',
      hint: 'None selected: all, future ones included.',
      byDefault: 'all',
      isMonospaced: true,
    },
    command: {
      flags: '--numbers <ids>',
      help: 'phone number ids, comma separated (default: all, also those to come)',
      label: 'numbers',
      byDefault: 'all',
    },
  }),
  filter: linesSetting({
    section: 'what',
    maxItems: FILTER_LIMITS.conditions,
    description: `Conditions on \`data\`, all of which must hold for an event to be sent: ${CONDITION_FORMS}. Null: every event. Test events and replays are sent whatever it says.`,
    check: checkFilter,
    portal: {
      field: 'filter',
      label: 'Content filter',
      hint: 'One condition to a line, on the data of the event; all must hold. For example: $.message.type equals "text", $.message.from in ["15550100", "15550101"], not $.message.referral exists. Empty: every event.',
      byDefault: 'every event',
      show: (conditions) => conditions.join(' and '),
      isMonospaced: true,
    },
    command: {
      flags: '--filter <conditions>',
      help: `conditions on data, separated by ";", all of which must hold: ${CONDITION_FORMS}`,
      label: 'filter',
      byDefault: 'every event',
      show: (conditions) => conditions.join('; '),
    },
  }),
  format: choiceSetting({
    section: 'what',
    title: 'The format',
    names: ['heliograph', 'meta'],
    fallback: 'heliograph',
    description:
      '`meta`: the body is the webhook body of the upstream platform, signed in `X-Hub-Signature-256` with the app secret, for software that speaks its API. Types without such a form (`order`, `media.ready`) are not sent.',
    portal: {
      field: 'format',
      label: 'Format',
      hint: 'Cloud API is for software that expects the webhooks of a Meta app, such as Chatwoot or n8n. It receives messages, statuses and payments.',
      widget: 'list',
      choices: { heliograph: 'Heliograph', meta: 'WhatsApp Cloud API' },
      show: (format) => ({ heliograph: 'Heliograph', meta: 'WhatsApp Cloud API' })[format],
    },
    command: {
      flags: '--format <format>',
      help: 'format of the bodies: heliograph, or meta (as the upstream platform sends them)',
      label: 'format',
    },
  }),
  windowClosingMinutes: numberSetting({
    section: 'what',
    description:
      'How many minutes before the end of the customer service window `window.closing` is sent, to endpoints whose `eventTypes` name it. Null: 60.',
    check: (minutes) => wholeNumber('The minutes before the end of the window', minutes, 5, 720),
    portal: {
      field: 'windowClosingMinutes',
      label: 'Window closing',
      unit: 'minutes',
      hint: `How long before the end of the service window ${WINDOW_CLOSING} is sent, if it is selected. From 5 to 720. Default: ${WINDOW_CLOSING_MINUTES}.`,
      byDefault: `${WINDOW_CLOSING_MINUTES} minutes before the end`,
      show: (minutes) => `${minutes} minutes before the end`,
    },
    command: {
      flags: '--window-closing-minutes <n>',
      help: 'minutes before the end of the service window at which window.closing is sent, 5 to 720 (default: 60)',
      label: 'window closing',
      byDefault: `${WINDOW_CLOSING_MINUTES} min before the end`,
      show: (minutes) => `${minutes} min before the end`,
    },
  }),
  retryScheduleSeconds: numbersSetting({
    section: 'retries',
    maxItems: MAX_RETRIES,
    check: checkRetrySchedule,
    portal: {
      field: 'retrySchedule',
      label: 'Retry schedule',
      unit: 'seconds',
      hint: ({ retryScheduleSeconds }) =>
        `Waits before attempts 2, 3, … Default: ${retryScheduleSeconds.join(', ')} (${waitsText(retryScheduleSeconds)}).`,
      byDefault: ({ retryScheduleSeconds }) => waitsText(retryScheduleSeconds),
      show: waitsText,
    },
    command: {
      flags: '--retry-schedule <seconds>',
      help: 'waits between attempts, comma separated, 1 to 20 (default: the setting)',
      label: 'retries after',
      show: (seconds) => `${seconds.join(', ')} s`,
    },
  }),
  timeoutMs: numberSetting({
    section: 'retries',
    // Leases are as long as the installation's time-out needs, so no endpoint can have a longer one.
    check: (ms, { maxTimeoutMs }) =>
      wholeNumber('The timeout in ms', ms, 1_000, maxTimeoutMs, ', the timeout of this service'),
    portal: {
      field: 'timeoutSeconds',
      label: 'Timeout',
      unit: 'seconds',
      perUnit: 1_000,
      hint: ({ timeoutMs }) => `For the whole response. Default and maximum: ${timeoutMs / 1_000}.`,
      byDefault: ({ timeoutMs }) => `${timeoutMs / 1_000} s`,
      show: (ms) => `${ms / 1_000} s`,
    },
    command: {
      flags: '--timeout-ms <ms>',
      help: 'of a whole attempt (default: the setting)',
      label: 'timeout',
      show: (ms) => `${ms} ms`,
    },
  }),
  asymmetricSignature: choiceSetting({
    section: 'signature',
    title: 'The asymmetric signature',
    names: ['none', 'ed25519'],
    fallback: 'none',
    portal: {
      field: 'asymmetricSignature',
      label: 'Public-key signature',
      hint: 'Adds a v1a signature to webhook-signature, which a receiver verifies with the public key, without the secret.',
      widget: 'list',
      choices: { none: 'None', ed25519: 'Ed25519 (v1a)' },
      show: (algorithm) => ({ none: 'none', ed25519: 'Ed25519 (v1a)' })[algorithm],
    },
    command: {
      flags: '--asymmetric-signature <algorithm>',
      help: 'sign with a private key too, for receivers that have the public key only: none or ed25519',
      label: 'public-key signature',
    },
  }),
  maxInFlight: numberSetting({
    section: 'limits',
    description:
      'Maximum requests in progress at once, divided among the worker processes of the installation.',
    check: (count) => wholeNumber('The in-flight limit', count, 1, 500),
    portal: {
      field: 'maxInFlight',
      label: 'Concurrent requests',
      hint: 'From 1 to 500. Default: adapts to the server, up to 100 for each worker process.',
      byDefault: 'adapts to the server, up to 100 for each worker process',
    },
    command: {
      flags: '--max-in-flight <n>',
      help: 'attempts at one time, 1 to 500',
      label: 'in flight',
    },
  }),
  rateLimitPerSecond: numberSetting({
    section: 'limits',
    check: (count) => wholeNumber('The rate limit per second', count, 1, 10_000),
    portal: {
      field: 'rateLimitPerSecond',
      label: 'Requests per second',
      hint: 'From 1 to 10,000. Default: no limit.',
      byDefault: 'no limit',
    },
    command: {
      flags: '--rate-limit <n>',
      help: 'attempts per second, 1 to 10000 (default: no limit)',
      label: 'rate limit',
      byDefault: 'none',
      show: (count) => `${count} per second`,
    },
  }),
  // How long a failing delivery may block others of its key before it steps aside; 0: for ever.
  blockLimitSeconds: numberSetting({
    section: 'limits',
    check: (seconds) =>
      seconds === 0
        ? 0
        : wholeNumber('The block limit in seconds, unless it is 0,', seconds, 60, 7 * DAY_SECONDS),
    portal: {
      field: 'blockLimitSeconds',
      label: 'Block limit',
      unit: 'seconds',
      hint: 'How long a failing event may block later events of its ordering key; then it steps aside and keeps its retries. From 60 to 604,800; 0: never. Default: 900 for order events and wider ordering.',
      byDefault: 'set by the installation',
      show: (seconds) => (seconds === 0 ? 'never: an event that fails blocks its key' : `${seconds} s`),
    },
    command: {
      flags: '--block-limit <seconds>',
      help: 'how long a failing delivery may block its key; 0 or never: forever (default: the setting)',
      words: { never: 0 },
      label: 'block limit',
      show: (seconds) => (seconds === 0 ? 'never' : `${seconds} s`),
    },
  }),
  deliveryWorkflows: choiceSetting({
    section: 'limits',
    title: 'The workflow setting',
    names: WORKFLOW_MODES,
    fallback: null,
    description:
      'Which deliveries have a workflow run that an operator sees: `auto` (first attempts in calm traffic, and failures) or `always` (every delivery; its requests are made inside its run, which costs milliseconds and limits how many go out per second). Null: the installation’s value.',
    portal: {
      field: 'deliveryWorkflows',
      label: 'Workflow runs',
      hint: 'Which deliveries an operator finds in Temporal. “Always” makes each request inside its own run: slower, and traceable one by one.',
      widget: 'list',
      choices: {
        auto: 'In calm traffic, and failures',
        always: 'Always: each request inside its run',
      },
      byDefault: ({ deliveryWorkflows }) => deliveryWorkflows,
    },
    command: {
      flags: '--delivery-workflows <mode>',
      help: 'which deliveries get a workflow run: auto or always (each attempt is made inside it; default: the setting)',
      label: 'workflow runs',
    },
  }),
  alwaysWorkflowsFor: textsSetting<EventType>({
    section: 'limits',
    item: EventTypeSchema,
    maxItems: 100,
    description:
      'Event types whose deliveries always have a workflow run, as `deliveryWorkflows: "always"` gives it to all. Null: `deliveryWorkflows` alone decides.',
    check: checkEventTypes,
    portal: {
      field: 'alwaysWorkflowsFor',
      label: 'Workflow runs always for',
      hint: 'Requests of these event types are made inside their own run, whatever “Workflow runs” says.',
      choices: CORE_TYPES,
      more: { ...OTHER_TYPES, summary: 'Events on request' },
      byDefault: 'no event type',
    },
    command: {
      flags: '--always-workflows-for <types>',
      help: 'event types that always get a workflow run, comma separated (default: none)',
      label: 'runs always for',
      byDefault: 'no event type',
    },
  }),
  orderScope: choiceSetting({
    section: 'order',
    title: 'The order scope',
    names: ['event', 'conversation', 'endpoint'],
    fallback: 'event',
    portal: {
      field: 'orderScope',
      label: 'Ordering',
      hint: 'Can change only while no delivery is pending.',
      widget: 'radios',
      choices: {
        event: 'Event: related events stay in order (recommended)',
        conversation: 'Conversation: all events of one customer, one after the other',
        endpoint: 'Endpoint: everything in order; an event that fails blocks all others until it steps aside',
      },
      show: (scope) => `by ${scope}`,
    },
    command: {
      flags: '--order-scope <scope>',
      help: 'scope of the order: event, conversation or endpoint',
      label: 'order scope',
    },
  }),
  ...BUFFER_SETTINGS,
};

export type SettingName = keyof typeof SETTINGS;

/** Null means the installation's setting, no limit, or all. */
export type StoredSettings = { [Name in SettingName]: (typeof SETTINGS)[Name]['fallback'] };

/** One that is missing is not changed, null goes back to the default. */
export type GivenSettings = {
  [Name in SettingName]?: Parameters<(typeof SETTINGS)[Name]['check']>[0] | null;
};

export type AnySetting = Setting<unknown, unknown>;

export function settingsOf(...sections: readonly Section[]): [SettingName, AnySetting][] {
  const all = Object.entries(SETTINGS) as [SettingName, AnySetting][];
  return sections.length === 0
    ? all
    : sections.flatMap((one) => all.filter(([, { section }]) => section === one));
}
