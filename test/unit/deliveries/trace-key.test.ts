import { expect, test } from 'vitest';
import { traceKeyOf } from '../../../src/engine/deliveries/trace-key.ts';

const message = { wabaId: '1', type: 'message', eventId: 'wamid.1' };

test('events of one message share a trace, also those of its media; orders of one catalog do not', () => {
  const key = traceKeyOf(message);
  expect(traceKeyOf({ ...message, type: 'status', uuid: 'a' })).toBe(key);
  expect(traceKeyOf({ wabaId: '1', type: 'media.ready', eventId: 'wamid.1_media' })).toBe(key);
  expect(traceKeyOf({ ...message, eventId: 'wamid.2' })).not.toBe(key);
  const order = (uuid: string) => traceKeyOf({ wabaId: '1', type: 'order', eventId: 'catalog', uuid });
  expect(order('a')).not.toBe(order('b'));
});
