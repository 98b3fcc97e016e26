import { MESSAGE_BATCH, UPSTREAM } from '../../platform/event-type.ts';
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
  if (type === MESSAGE_BATCH) return batchEnvelope(items(member(event, 'events')));
  // Only entries of other fields than `messages` say when they were made.
  const time = type.startsWith(UPSTREAM) ? `"time":${occurredAtSeconds(event)},` : '';
  return envelope(wabaId, changeOf(type, event), time);
}

/** Several messages of one conversation in one change, as upstream itself sends them when they come together. */
function batchEnvelope(events: readonly JsonNode[]): Buffer {
  const data = events.map((event) => member(event, 'data'));
  const wabaId = sourceIn(events[0] ?? null, 'wabaId') ?? '"0"';
  return envelope(
    wabaId,
    messagesChange(
      data,
      'messages',
      data.map((one) => sourceIn(one, 'message')),
    ),
  );
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
      return messagesChange([data], 'messages', [sourceIn(data, 'message')]);
    case 'status':
      return messagesChange([data], 'statuses', [sourceIn(data, 'status')]);
    case 'payment':
      return messagesChange([data], 'statuses', [sourceIn(data, 'raw')]);
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

/** Of several events, which are of one number, what each of them says once. */
function messagesChange(
  data: readonly (JsonNode | null)[],
  list: 'messages' | 'statuses',
  found: readonly (string | null)[],
): string {
  const [first = null] = data;
  const contacts = contactsIn(data);
  const others = new Map(
    data
      .flatMap((one) => members(member(one, 'value')))
      .map(({ name, value }) => [sourceOf(name), sourceOf(value)]),
  );
  const parts = [
    '"messaging_product":"whatsapp"',
    `"metadata":${sourceIn(first, 'metadata') ?? '{}'}`,
    ...(contacts === null ? [] : [`"contacts":${contacts}`]),
    `"${list}":[${found.map((item) => item ?? '{}').join(',')}]`,
    ...[...others].map(([name, value]) => `${name}:${value}`),
  ];
  return `{"value":{${parts.join(',')}},"field":"messages"}`;
}

/** Null: there are none. */
function contactsIn(data: readonly (JsonNode | null)[]): string | null {
  const lists = data.flatMap((one) => member(one, 'contacts') ?? []).filter((list) => items(list).length > 0);
  const [first] = lists;
  if (first === undefined) return null;
  if (lists.length === 1) return sourceOf(first);
  return `[${[...new Set(lists.flatMap(items).map(sourceOf))].join(',')}]`;
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
