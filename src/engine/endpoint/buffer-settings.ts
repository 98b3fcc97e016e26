import { Type } from 'typebox';
import { invalidValue, shown } from '../../platform/request-input.ts';
import { BUFFER_DEFAULTS, BUFFER_LIMITS } from './buffer-limits.ts';
import { numberSetting, textsSetting, wholeNumber } from './setting.ts';

/** The types of messages that can wait for others. */
const BUFFER_TYPES = [
  ...(['text', 'image', 'video', 'audio', 'document', 'sticker', 'location', 'contacts'] as const),
  ...(['button', 'interactive', 'reaction'] as const),
];

/** Settings of endpoints that get the messages of a conversation together (docs/decisions/0103). */
export const BUFFER_SETTINGS = {
  bufferSeconds: numberSetting({
    section: 'order',
    description:
      'How long a conversation must be quiet until its messages are sent together, as one `message.batch`; 0 or null: each message is sent at once. Needs `orderScope: "conversation"`.',
    check: (seconds) => wholeNumber('The buffer time in seconds', seconds, 0, BUFFER_LIMITS.seconds),
    portal: {
      field: 'bufferSeconds',
      label: 'Buffer',
      unit: 'seconds',
      hint: 'For bots: messages of a conversation wait until it has been quiet for so long, and are sent in one request. From 1 to 60; needs ordering by conversation. Default: 0, no waiting.',
      byDefault: 'off',
      show: (seconds) => (seconds === 0 ? 'off' : `${seconds} s`),
    },
    command: {
      flags: '--buffer <seconds>',
      help: 'send messages of a conversation together once it has been quiet for so long, 1 to 60; 0: off; needs --order-scope conversation',
      label: 'buffer',
      byDefault: 'off',
      show: (seconds) => (seconds === 0 ? 'off' : `${seconds} s`),
    },
  }),
  bufferMaxSeconds: numberSetting({
    section: 'order',
    description: `How long a message waits at most, from 1 to ${BUFFER_LIMITS.maxSeconds}. Null: ${BUFFER_DEFAULTS.maxSecondsFactor} times \`bufferSeconds\`.`,
    check: (seconds) =>
      wholeNumber('The longest buffer time in seconds', seconds, 1, BUFFER_LIMITS.maxSeconds),
    portal: {
      field: 'bufferMaxSeconds',
      label: 'Buffer at most',
      unit: 'seconds',
      hint: `How long a message waits at most, however busy its conversation is. From 1 to ${BUFFER_LIMITS.maxSeconds}. Default: ${BUFFER_DEFAULTS.maxSecondsFactor} times the buffer.`,
      byDefault: `${BUFFER_DEFAULTS.maxSecondsFactor} times the buffer`,
      show: (seconds) => `${seconds} s`,
    },
    command: {
      flags: '--buffer-max <seconds>',
      help: `how long a message waits at most, 1 to ${BUFFER_LIMITS.maxSeconds} (default: ${BUFFER_DEFAULTS.maxSecondsFactor} times --buffer)`,
      label: 'buffer at most',
      show: (seconds) => `${seconds} s`,
    },
  }),
  bufferMaxMessages: numberSetting({
    section: 'order',
    description: `How many messages are sent together at most, from 2 to ${BUFFER_LIMITS.messages}. Null: ${BUFFER_DEFAULTS.messages}.`,
    check: (count) => wholeNumber('The number of buffered messages', count, 2, BUFFER_LIMITS.messages),
    portal: {
      field: 'bufferMaxMessages',
      label: 'Messages in one request',
      hint: `How many buffered messages are sent together at most. From 2 to ${BUFFER_LIMITS.messages}. Default: ${BUFFER_DEFAULTS.messages}.`,
      byDefault: String(BUFFER_DEFAULTS.messages),
    },
    command: {
      flags: '--buffer-messages <n>',
      help: `buffered messages in one request at most, 2 to ${BUFFER_LIMITS.messages} (default: ${BUFFER_DEFAULTS.messages})`,
      label: 'buffered together',
      byDefault: `${BUFFER_DEFAULTS.messages} (default)`,
    },
  }),
  bufferTypes: textsSetting<string>({
    section: 'order',
    item: Type.Enum(BUFFER_TYPES),
    maxItems: BUFFER_TYPES.length,
    check: checkBufferTypes,
    portal: {
      field: 'bufferTypes',
      label: 'Buffered messages',
      hint: 'Types of messages that wait for others. Any other event ends the wait. None selected: text.',
      choices: Object.fromEntries(BUFFER_TYPES.map((type) => [type, type])),
      byDefault: 'text',
    },
    command: {
      flags: '--buffer-types <types>',
      help: `types of messages that wait for others, comma separated: ${BUFFER_TYPES.join(', ')} (default: text)`,
      label: 'buffered types',
      byDefault: 'text (default)',
    },
  }),
};

function checkBufferTypes(names: readonly string[]): string[] {
  const unknown = names.find((name) => !BUFFER_TYPES.some((type) => type === name));
  if (unknown !== undefined || names.length === 0) {
    const given = unknown === undefined ? 'an empty list' : shown(unknown);
    throw invalidValue(`Name at least one type of messages of ${BUFFER_TYPES.join(', ')}, not ${given}.`);
  }
  return [...new Set(names)];
}
