import { onTestFinished } from 'vitest';

export type StreamBlock = {
  id: string | null;
  event: string | null;
  retry: string | null;
  data: string | null;
};

/** A client of the stream of events that reads block by block, as fast as it is asked to. */
export async function openEventStream(
  baseUrl: string,
  authorization: string,
  { query = '', lastEventId = null as string | null } = {},
) {
  const leave = new AbortController();
  onTestFinished(() => leave.abort());
  const response = await fetch(`${baseUrl}/api/external/events/stream${query}`, {
    headers: { authorization, ...(lastEventId !== null && { 'last-event-id': lastEventId }) },
    signal: leave.signal,
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  let lastId = lastEventId;
  const next = async (): Promise<StreamBlock | null> => {
    for (;;) {
      const end = text.indexOf('\n\n');
      if (end >= 0) {
        const block = blockOf(text.slice(0, end));
        text = text.slice(end + 2);
        lastId = block.id ?? lastId;
        return block;
      }
      const part = await reader?.read().catch(() => null);
      if (part === undefined || part === null || part.done) return null;
      text += part.value;
    }
  };
  /** The next block that has data; null: the stream ended. */
  const nextData = async (): Promise<StreamBlock | null> => {
    for (;;) {
      const block = await next();
      if (block === null || block.data !== null) return block;
    }
  };
  return { response, next, nextData, lastId: () => lastId, cut: () => leave.abort() };
}

function blockOf(text: string): StreamBlock {
  const block: StreamBlock = { id: null, event: null, retry: null, data: null };
  for (const line of text.split('\n')) {
    const name = line.slice(0, line.indexOf(':'));
    if (name in block) block[name as keyof StreamBlock] = line.slice(name.length + 2);
  }
  return block;
}
