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
