import { UPSTREAM } from '../../platform/event-type.ts';
import {
  items,
  type JsonNode,
  member,
  members,
  parseJson,
  sourceOf,
  stringOf,
} from '../../platform/json/json-text.ts';

/**
 * An event's stored body as a webhook body of the upstream platform: one entry with one change with one item. It is made
 * of slices of the stored text alone, so every attempt, replay and endpoint gets the same bytes.
 */
export function upstreamBody(eventBody: Uint8Array): Buffer {
  const event = parseJson(Buffer.from(eventBody).toString('utf8'), { deepNodes: 'mark' });
  const type = stringOf(member(event, 'eventType')) ?? '';
  const wabaId = sourceIn(event, 'wabaId') ?? '"0"';
  if (type === 'test') return envelope('"0"', testChange(event));
  // Only entries of other fields than `messages` say when they were made.
  const time = type.startsWith(UPSTREAM) ? `"time":${occurredAtSeconds(event)},` : '';
  return envelope(wabaId, changeOf(type, event), time);
}

function envelope(id: string, change: string, time = ''): Buffer {
  const entry = `{"id":${id},${time}"changes":[${change}]}`;
  return Buffer.from(escaped(`{"object":"whatsapp_business_account","entry":[${entry}]}`));
}

function occurredAtSeconds(event: JsonNode): number {
  return Math.floor(Date.parse(stringOf(member(event, 'occurredAt')) ?? '') / 1_000);
}

/**
 * Upstream documents its signature as that of a body whose other characters are escaped, and some receivers escape what
 * they got before they check it: a body that is escaped already is right for them and for all others.
 */
function escaped(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function changeOf(type: string, event: JsonNode): string {
  const data = member(event, 'data');
  switch (type) {
    case 'message':
      return messagesChange(data, 'messages', sourceIn(data, 'message'));
    case 'status':
      return messagesChange(data, 'statuses', sourceIn(data, 'status'));
    case 'payment':
      return messagesChange(data, 'statuses', sourceIn(data, 'raw'));
    default: {
      const value = sourceIn(data, 'value');
      if (type.startsWith(UPSTREAM) && value !== null) {
        return `{"value":${value},"field":${sourceIn(data, 'field')}}`;
      }
      // An event that waited while its endpoint got this format: receivers ignore fields that they do not know.
      return `{"value":${sourceOf(event)},"field":${JSON.stringify(`heliograph.${type}`)}}`;
    }
  }
}

function messagesChange(data: JsonNode | null, list: 'messages' | 'statuses', item: string | null): string {
  const contacts = member(data, 'contacts');
  const parts = [
    '"messaging_product":"whatsapp"',
    `"metadata":${sourceIn(data, 'metadata') ?? '{}'}`,
    ...(contacts !== null && items(contacts).length > 0 ? [`"contacts":${sourceOf(contacts)}`] : []),
    `"${list}":[${item ?? '{}'}]`,
    ...members(member(data, 'value')).map(({ name, value }) => `${sourceOf(name)}:${sourceOf(value)}`),
  ];
  return `{"value":{${parts.join(',')}},"field":"messages"}`;
}

/** The test that the upstream platform's dashboard sends: a message to a number of no account. */
function testChange(event: JsonNode): string {
  const message = {
    from: '16315551181',
    id: stringOf(member(event, 'eventId')),
    timestamp: String(occurredAtSeconds(event)),
    type: 'text',
    text: { body: 'this is a text message' },
  };
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '16505551111', phone_number_id: '123456123' },
    contacts: [{ profile: { name: 'test user name' }, wa_id: '16315551181' }],
    messages: [message],
  };
  return JSON.stringify({ value, field: 'messages' });
}

function sourceIn(node: JsonNode | null, name: string): string | null {
  const found = member(node, name);
  return found === null ? null : sourceOf(found);
}
