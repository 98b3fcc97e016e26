/** What every event has around its data. */
type Envelope = { eventType: string; eventId: string; data: unknown };

/** Reads the body of a webhook; any text is accepted. */
export function readEnvelope(body: string): Envelope {
  try {
    const parsed: Record<string, unknown> | null = JSON.parse(body);
    const { eventType, eventId, data } = parsed ?? {};
    return {
      eventType: typeof eventType === 'string' ? eventType : '?',
      eventId: typeof eventId === 'string' ? eventId : '',
      data,
    };
  } catch {
    return { eventType: 'not JSON', eventId: '', data: undefined };
  }
}
