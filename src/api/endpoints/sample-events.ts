import { TEST_PHONE_NUMBER_ID } from '../../engine/deliveries/envelope.ts';
import type { SampleEvent } from '../../features/endpoints/test-event.ts';
import type { CoreEventType } from '../../platform/event-type.ts';
import { invalidValue } from '../../platform/request-input.ts';
import { WEBHOOK_EXAMPLES } from '../openapi/webhooks/webhook-examples.ts';

export const SAMPLE_NAMES = [
  'test',
  'message',
  'image',
  'location',
  'button',
  'status',
  'status.failed',
  'payment',
  'order',
  'media.ready',
  'window.closing',
  'preference',
] as const;

type SampleName = (typeof SAMPLE_NAMES)[number];

type Members = Record<string, unknown>;

/** In what the message of a sample differs from the example of a message. */
const MESSAGES: Readonly<Partial<Record<SampleName, Members>>> = {
  image: {
    type: 'image',
    image: {
      caption: 'Front door',
      mime_type: 'image/jpeg',
      sha256: 'n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=',
      id: '1000000000000001',
    },
  },
  location: {
    type: 'location',
    location: { latitude: 12.9716, longitude: 77.5946, name: 'Fixture Store', address: '1 Example Road' },
  },
  button: {
    type: 'interactive',
    interactive: { type: 'button_reply', button_reply: { id: 'confirm', title: 'Confirm' } },
  },
};

/**
 * Null for the `test` event. The id in its contents, as of a message, is its eventId. Throws RequestError `invalid_value` for an eventId
 * without a sample.
 */
export function sampleEvent(name: SampleName, eventId: string | null): SampleEvent | null {
  if (name === 'test') {
    if (eventId === null) return null;
    throw invalidValue('The test event always has a new eventId: name a sample.', 'eventId');
  }
  const type = typeOf(name);
  return { type, eventId, dataOf: (id) => JSON.stringify(dataOf(name, type, id)) };
}

function typeOf(name: Exclude<SampleName, 'test'>): CoreEventType {
  if (name === 'status.failed') return 'status';
  return name === 'image' || name === 'location' || name === 'button' ? 'message' : name;
}

function dataOf(name: SampleName, type: CoreEventType, eventId: string): Members {
  const { data } = structuredClone(WEBHOOK_EXAMPLES[type]) as { data: Members };
  if ('metadata' in data) {
    data.metadata = { ...(data.metadata as Members), phone_number_id: TEST_PHONE_NUMBER_ID };
  }
  if (type === 'message') {
    const { text, ...message } = data.message as Members;
    data.message = { ...message, ...(MESSAGES[name] ?? { text }), id: eventId };
  }
  if (type === 'status') data.status = { ...(data.status as Members), id: eventId, ...failureOf(name) };
  if (type === 'media.ready') data.metaMessageId = eventId;
  return data;
}

function failureOf(name: SampleName): Members {
  if (name !== 'status.failed') return {};
  const details = { details: 'More than 24 hours have passed since the customer last wrote.' };
  const error = { code: 131047, title: 'Re-engagement message', error_data: details };
  return { status: 'failed', pricing: undefined, errors: [error] };
}
