/** What the stream says of an event besides its body. */
export type EventHead = {
  id: string;
  eventType: string;
  eventId: string;
  phoneNumberId: string | null;
  sequence: number;
  createdAt: string;
  occurredAt: string | null;
};

export type StreamedEvent = EventHead & {
  /** The bytes of the webhook; null while the event is not released. */
  body: Buffer | null;
};

/**
 * An event of the stream. Its body is the text as it came: parsed and written again, it could have other bytes, and
 * large numbers lose digits.
 */
export function readEvent(data: string): StreamedEvent {
  const { body: _parsed, ...head } = JSON.parse(data) as EventHead & { body: unknown };
  return { ...head, body: bodyOf(data) };
}

/** The bytes of the member `body` of an event; null: it is not released. */
export function bodyOf(json: string): Buffer | null {
  const source = memberSource(json, 'body');
  return source === null || source === 'null' ? null : Buffer.from(source);
}

/** The text of a member of a JSON object as it stands there; null when it has none of this name. */
function memberSource(json: string, name: string): string | null {
  const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]/gs;
  const key = JSON.stringify(name);
  let depth = 0;
  let valueAt: number | null = null;
  let last = '';
  for (const { 0: token, index } of json.matchAll(tokens)) {
    const isEnd = depth === 1 && (token === ',' || token === '}');
    if (isEnd && valueAt !== null) return json.slice(valueAt, index).trim();
    if (depth === 1 && token === ':' && last === key && valueAt === null) valueAt = index + 1;
    if (token === '{' || token === '[') depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    last = token;
  }
  return null;
}

export type Block = { id: string | null; event: string | null; retry: string | null; data: string | null };

/** Splits text that comes in pieces into blocks of server-sent events. */
export function makeBlockReader() {
  let text = '';
  return (piece: string): Block[] => {
    text += piece;
    const blocks: Block[] = [];
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      blocks.push(blockOf(text.slice(0, end)));
      text = text.slice(end + 2);
    }
    return blocks;
  };
}

function blockOf(text: string): Block {
  const block: Block = { id: null, event: null, retry: null, data: null };
  for (const line of text.split('\n')) {
    const at = line.indexOf(':');
    const name = line.slice(0, at);
    if (at > 0 && Object.hasOwn(block, name)) {
      block[name as keyof Block] = line.slice(at + 1).replace(/^ /, '');
    }
  }
  return block;
}
