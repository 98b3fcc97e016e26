import { expect, test } from 'vitest';
import { readCallItems } from '../../../src/ingest/split/calls.ts';
import { parseJson } from '../../../src/platform/json/json-text.ts';

const BUSINESS = '12025550100';
const CUSTOMER = '12025550143';
const USER_ID = 'US.10000000000000000143';

test.each([
  { from: BUSINESS, to: CUSTOMER },
  { from: CUSTOMER, to: BUSINESS },
])('the customer of a call of ours is who is not the business: from $from to $to', (numbers) => {
  for (const user of [{}, { to_user_id: USER_ID }]) {
    const call = {
      id: 'wacid.1',
      event: 'connect',
      direction: 'BUSINESS_INITIATED',
      timestamp: '1790000131',
    };
    const value = {
      metadata: { display_phone_number: BUSINESS, phone_number_id: '800000000000111' },
      calls: [{ ...call, ...numbers, ...user }],
    };
    const items = readCallItems(parseJson(JSON.stringify(value)));
    const userId = 'to_user_id' in user ? USER_ID : null;
    expect(items).toMatchObject([{ waId: CUSTOMER, userId, direction: 'outbound', state: 'ringing' }]);
  }
});

const METADATA = { display_phone_number: BUSINESS, phone_number_id: '800000000000111' };
const INBOUND = { id: 'wacid.1', from: CUSTOMER, to: BUSINESS, timestamp: '1790000131' };

const read = (value: object) => readCallItems(parseJson(JSON.stringify({ metadata: METADATA, ...value })));

test.each([
  [
    { ...INBOUND, event: 'connect' },
    { state: 'ringing', direction: 'inbound' },
  ],
  [{ ...INBOUND, event: 'connect', from: BUSINESS, to: CUSTOMER }, { direction: 'outbound' }],
  [{ ...INBOUND, event: 'call_created' }, { state: 'ringing' }],
  [{ ...INBOUND, event: 'terminate', status: 'Completed', duration: 3 }, { state: 'completed' }],
  [{ ...INBOUND, event: 'terminate', status: 'Failed', duration: 3 }, { state: 'failed' }],
  [
    { ...INBOUND, event: 'terminate', status: 'FAILED' },
    { state: 'failed', errorCode: 138_007 },
  ],
  [
    { ...INBOUND, event: 'terminate' },
    { state: 'failed', durationSeconds: null },
  ],
  [
    { ...INBOUND, event: 'terminate', duration: '3' },
    { state: 'completed', durationSeconds: 3 },
  ],
  [{ ...INBOUND, event: 'terminate', status: 'UNHEARD_OF', duration: 3 }, { state: 'completed' }],
])('%j says %j', (call, said) => {
  expect(read({ calls: [call], errors: [{ code: 138_007 }] })).toMatchObject([said]);
});

test('an error belongs to the end of a call, and the beginning has none', () => {
  const calls = [{ ...INBOUND, event: 'connect' }];
  expect(read({ calls, errors: [{ code: 138_007 }] })).toMatchObject([{ errorCode: null }]);
});

test.each(['ACCEPTED', 'Accepted', 'accepted'])('the status %s is read in any case', (status) => {
  const statuses = [{ id: 'wacid.1', type: 'call', status, recipient_id: CUSTOMER, timestamp: '1790000131' }];
  expect(read({ statuses })).toMatchObject([{ state: 'accepted', direction: 'outbound', waId: CUSTOMER }]);
});

test.each(['call_recording_available', 'call_transcription_available', 'media_update', undefined])(
  'the event %s says nothing of how a call went',
  (event) => {
    expect(read({ calls: [{ ...INBOUND, event }] })).toEqual([]);
  },
);
