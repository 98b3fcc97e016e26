import { describe, expect, test } from 'vitest';
import { diffBodies, diffLines } from '../../../clients/cli/src/diff.ts';
import { bodyOf, makeBlockReader, readEvent } from '../../../clients/cli/src/event-block.ts';
import { signatureOf, webhookHeaders } from '../../../clients/cli/src/signature.ts';
import { webhookHeaders as gatewayHeaders } from '../../../src/engine/deliveries/webhook-request.ts';
import { USER_AGENT } from '../../../src/platform/http/user-agent.ts';

const HEAD = {
  id: 'evt_019aa2b37c4d7e8f9a0b1c2d3e4f5061',
  eventType: 'status',
  eventId: 'wamid.ä%,"body":{}',
  phoneNumberId: '800000000000111',
  sequence: 3,
  createdAt: '2026-11-21T09:30:00.120Z',
  occurredAt: '2026-11-21T09:30:00.123Z',
};

describe('the stream', () => {
  test('gives the body of an event byte for byte, whatever stands around and in it', () => {
    const body = '{"text":{"body":"a\\"}, \\"body\\":1"},"n":12345678901234567890.10,"body":[{"body":null}]}';
    const data = `${JSON.stringify(HEAD).slice(0, -1)},"body":${body}}`;
    expect(readEvent(data)).toEqual({ ...HEAD, body: Buffer.from(body) });
    expect(readEvent(`${JSON.stringify(HEAD).slice(0, -1)},"body":null}`).body).toBeNull();
    expect(bodyOf(`{"deliveries":[{"body":1}],"body":${body}}`)?.toString()).toBe(body);
    expect(bodyOf('{"a":1}')).toBeNull();
  });

  test('is read the same in whatever pieces it comes', () => {
    const text =
      'retry: 1000\nid: A\n: hello\n\nid: B\ndata: {"a":1}\n\nevent: end\ndata: {"reason":"max_age"}\n\n';
    const whole = makeBlockReader()(text);
    expect(whole).toEqual([
      { id: 'A', event: null, retry: '1000', data: null },
      { id: 'B', event: null, retry: null, data: '{"a":1}' },
      { id: null, event: 'end', retry: null, data: '{"reason":"max_age"}' },
    ]);
    const read = makeBlockReader();
    expect([...text].flatMap((letter) => read(letter))).toEqual(whole);
  });
});

test('requests have the headers that the gateway sends, and its signature', () => {
  const body = Buffer.from('{"a":1}');
  const secret = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;
  const made = {
    event: HEAD,
    deliveryId: 'dlv_1',
    attempt: 2,
    userAgent: USER_AGENT,
    timestampSeconds: 1_790_000_000,
  };
  expect(webhookHeaders(secret, body, made)).toEqual(
    gatewayHeaders({
      webhookId: HEAD.id,
      timestampSeconds: 1_790_000_000,
      signature: signatureOf(Buffer.alloc(32, 3), HEAD.id, '1790000000', body),
      eventType: HEAD.eventType,
      eventId: HEAD.eventId,
      deliveryId: 'dlv_1',
      attempt: 2,
      sequence: 3,
      replay: false,
    }),
  );
});

describe('the diff of two bodies', () => {
  test('shows members that differ, with their surroundings, and nothing for bodies that are the same', () => {
    const before = Buffer.from('{"a":1,"status":{"id":"x","status":"sent"},"z":[1,2]}');
    const after = Buffer.from('{"a":1,"status":{"id":"x","status":"read","t":5},"z":[1,2]}');
    const lines = diffBodies(before, after, 0);
    expect(lines).toEqual([
      { kind: 'removed', text: '    "status":"sent"' },
      { kind: 'added', text: '    "status":"read",' },
      { kind: 'added', text: '    "t":5' },
    ]);
    expect(diffBodies(before, before)).toEqual([]);
  });

  test('of lines makes the second text of the first', () => {
    const before = ['a', 'b', 'c', 'd'];
    const after = ['b', 'x', 'd', 'e'];
    const lines = diffLines(before, after);
    expect(lines.filter(({ kind }) => kind !== 'added').map(({ text }) => text)).toEqual(before);
    expect(lines.filter(({ kind }) => kind !== 'removed').map(({ text }) => text)).toEqual(after);
    expect(lines.filter(({ kind }) => kind === 'same').map(({ text }) => text)).toEqual(['b', 'd']);
  });
});
