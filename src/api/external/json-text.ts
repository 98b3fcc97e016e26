type TextReply = {
  type(contentType: string): TextReply;
  serializer(write: (payload: unknown) => string): TextReply;
  send(payload: never): unknown;
};

/**
 * Sends an answer that is JSON text already: the upstream objects in it must not pass through JSON.parse, which rounds
 * large numbers. Typed as what a handler of any answer may return.
 */
export function sendJsonText(reply: TextReply, json: string): never {
  return reply
    .type('application/json; charset=utf-8')
    .serializer(String)
    .send(json as never) as never;
}
