import { describe, expect, test } from 'vitest';
import { shownCount } from '../../../src/engine/queue/waiting.ts';
import {
  checkEndpointOptions,
  type EndpointOptions,
} from '../../../src/features/endpoints/endpoint-options.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import { RequestError } from '../../../src/platform/request-input.ts';

const rules = {
  // Nothing here looks at phone numbers, and no WABA has lists of targets.
  database: { raw: async () => ({ rows: [] }) } as never,
  urlRules: {
    allowHttp: false,
    guard: makeAddressGuard({ allowCidrs: [] }),
    resolve: async () => ['93.184.215.14'],
  },
  maxTimeoutMs: 15_000,
};

const check = (given: EndpointOptions) => checkEndpointOptions(rules, '900000000000101', given);

describe('what an endpoint may be given', () => {
  test('only what is given is changed', async () => {
    expect(await check({})).toEqual({});
    expect(await check({ timeoutMs: 5_000 })).toEqual({ timeoutMs: 5_000 });
  });

  test('null goes back to the default of each option', async () => {
    expect(
      await check({
        description: null,
        eventTypes: null,
        phoneNumberIds: null,
        retryScheduleSeconds: null,
        timeoutMs: null,
        maxInFlight: null,
        rateLimitPerSecond: null,
        blockLimitSeconds: null,
        deliveryWorkflows: null,
        orderScope: null,
      }),
    ).toEqual({
      description: '',
      eventTypes: null,
      phoneNumberIds: null,
      retryScheduleSeconds: null,
      timeoutMs: null,
      maxInFlight: null,
      rateLimitPerSecond: null,
      blockLimitSeconds: null,
      deliveryWorkflows: null,
      orderScope: 'event',
    });
  });

  test.each<EndpointOptions>([
    { retryScheduleSeconds: [1] },
    { retryScheduleSeconds: Array.from({ length: 20 }, () => 30_240) },
    { retryScheduleSeconds: [86_400, 86_400, 86_400, 86_400, 86_400, 86_400, 86_400] },
    { timeoutMs: 1_000 },
    { timeoutMs: 15_000 },
    { maxInFlight: 1 },
    { maxInFlight: 500 },
    { rateLimitPerSecond: 10_000 },
    { blockLimitSeconds: 0 },
    { blockLimitSeconds: 60 },
    { blockLimitSeconds: 604_800 },
    { bufferSeconds: 0 },
    { bufferSeconds: 60 },
    { bufferMaxSeconds: 1 },
    { bufferMaxSeconds: 300 },
    { bufferMaxMessages: 2 },
    { bufferMaxMessages: 100 },
    { bufferTypes: ['image'] },
    { asymmetricSignature: 'ed25519' },
    { orderScope: 'conversation' },
    { deliveryWorkflows: 'always' },
  ])('accepts the bounds themselves: %j', async (given) => {
    expect(await check(given)).toEqual(given);
  });

  test.each<[EndpointOptions, string]>([
    [{ retryScheduleSeconds: [] }, '1 to 20 waits'],
    [{ retryScheduleSeconds: Array.from({ length: 21 }, () => 1) }, '1 to 20 waits'],
    [{ retryScheduleSeconds: [0] }, 'from 1 to 86400'],
    [{ retryScheduleSeconds: [86_401] }, 'from 1 to 86400'],
    [{ retryScheduleSeconds: [1.5] }, 'whole number'],
    [{ retryScheduleSeconds: [Number.NaN] }, 'whole number'],
    [{ retryScheduleSeconds: Array.from({ length: 8 }, () => 86_400) }, '7 days'],
    [{ timeoutMs: 999 }, 'from 1000 to 15000'],
    [{ timeoutMs: 15_001 }, 'the timeout of this service'],
    [{ maxInFlight: 0 }, 'from 1 to 500'],
    [{ maxInFlight: 501 }, 'from 1 to 500'],
    [{ rateLimitPerSecond: 10_001 }, 'from 1 to 10000'],
    [{ blockLimitSeconds: 59 }, 'from 60 to 604800'],
    [{ blockLimitSeconds: 604_801 }, 'from 60 to 604800'],
    [{ bufferSeconds: 61 }, 'from 0 to 60'],
    [{ bufferMaxSeconds: 301 }, 'from 1 to 300'],
    [{ bufferMaxMessages: 1 }, 'from 2 to 100'],
    [{ bufferTypes: [] }, 'at least one type'],
    [{ bufferTypes: ['text', 'fax'] }, 'not "fax"'],
    [{ maxInFlight: '5' as never }, 'whole number'],
    [{ asymmetricSignature: 'toString' }, 'none, ed25519'],
    [{ deliveryWorkflows: 'failures' }, 'auto, always'],
    [{ orderScope: 'key' }, 'event, conversation, endpoint'],
    [{ eventTypes: [] }, 'at least one event type'],
    [{ eventTypes: ['message', '__proto__'] }, 'An event type must be one of'],
    [{ description: 'a\0b' }, 'control characters'],
    [{ url: 'https://10.0.0.1/' }, 'address that webhooks are not sent to'],
    [{ url: 'http://shop.example/' }, 'https://'],
    [{ url: 'x\u0000' }, 'control character'],
  ])('refuses %j', async (given, message) => {
    const error = await check(given).catch((reason) => reason);
    expect(error).toBeInstanceOf(RequestError);
    expect(error.message).toContain(message);
  });

  test('a name that leads to a private address is refused as the sender would', async () => {
    const urlRules = { ...rules.urlRules, resolve: async () => ['93.184.215.14', '10.0.0.1'] };
    const given = { url: 'https://shop.example/' };
    await expect(checkEndpointOptions({ ...rules, urlRules }, '1', given)).rejects.toMatchObject({
      code: 'address_not_allowed',
    });
  });
});

test('a count says that counting stopped', () => {
  expect(shownCount({ count: 12, more: false })).toBe('12');
  expect(shownCount({ count: 100_000, more: true })).toBe('100,000+');
});
