import { describe, expect, test } from 'vitest';
import { failedStatus } from '../../../../src/features/messages/send/record-send.ts';
import { sendRetryDelayMs } from '../../../../src/features/messages/send/send-pacing.ts';
import { judgeSend } from '../../../../src/features/messages/send/send-verdict.ts';
import { markedMessageId, sendMarker } from '../../../../src/features/messages/statuses.ts';

const FIRST = { attempt: 1, ageMs: 0, retryMs: 3_600_000 };

function refusal(code: number | null, httpStatus = 400) {
  const error = code === null ? null : { message: `(#${code}) No`, type: 'OAuthException', code };
  return {
    kind: 'refused' as const,
    httpStatus,
    code,
    error,
    transient: httpStatus === 429,
    retryAfterMs: null,
  };
}

describe('the verdict on an attempt', () => {
  test.each([
    [2, 503],
    [4, 400],
    [80007, 400],
    [130429, 400],
    [131000, 500],
    [131016, 500],
    [131056, 400],
    [131057, 500],
    [131208, 400],
    [133004, 503],
    [2494100, 400],
    [null, 429],
  ])('code %s is tried again, until its time is over', (code, status) => {
    expect(judgeSend(refusal(code, status), FIRST).kind).toBe('again');
    expect(judgeSend(refusal(code, status), { ...FIRST, attempt: 9 }).kind).toBe('again');
    expect(judgeSend(refusal(code, status), { ...FIRST, ageMs: 3_600_001 }).kind).toBe('failed');
  });

  test.each([
    0, 190, 10, 200, 100, 131008, 131009, 131021, 131026, 131047, 131048, 131049, 132001, 132015, 999,
  ])('code %s is final: no repetition by itself would help', (code) => {
    expect(judgeSend(refusal(code), FIRST).kind).toBe('failed');
  });

  test.each([1, 131053])('code %s is tried once more', (code) => {
    expect(judgeSend(refusal(code), FIRST).kind).toBe('again');
    expect(judgeSend(refusal(code), { ...FIRST, attempt: 2 }).kind).toBe('failed');
  });

  test('limits hold back who shares them', () => {
    expect(judgeSend(refusal(131056), FIRST)).toMatchObject({ holdBack: 'pair' });
    expect(judgeSend(refusal(130429), FIRST)).toMatchObject({ holdBack: 'number' });
    expect(judgeSend(refusal(131000, 500), FIRST)).toMatchObject({ holdBack: null });
  });

  test('what may have arrived is unknown for ever, what did not is tried again', () => {
    const ambiguous = judgeSend({ kind: 'ambiguous', reason: 'ECONNRESET' }, FIRST);
    expect(ambiguous).toMatchObject({ kind: 'unknown', error: { code: 'outcome_unknown' } });
    expect(judgeSend({ kind: 'not_sent', reason: 'ECONNREFUSED' }, FIRST).kind).toBe('again');
  });

  test('waits grow as upstream advises, and follow what it asks for', () => {
    expect([1, 2, 3, 4, 5].map((attempt) => sendRetryDelayMs(attempt, null, () => 0.5))).toEqual([
      1_000, 4_000, 16_000, 64_000, 256_000,
    ]);
    expect(sendRetryDelayMs(1, 30_000)).toBe(30_000);
    expect(sendRetryDelayMs(50, null)).toBeLessThanOrEqual(330_000);
  });
});

describe('the failed status of a message without an upstream id', () => {
  test('has the form of upstream’s own', () => {
    const { id, statusJson, dataJson } = failedStatus({
      messageId: '17',
      phoneNumberId: '800000000000111',
      displayPhoneNumber: '+1 202-555-0100',
      recipient: '12025550143',
      content: JSON.stringify({ biz_opaque_callback_data: 'mine' }),
      error: {
        code: 'upstream_refused',
        message: 'refused',
        upstream: {
          message: '(#131047) Re-engagement message',
          code: 131047,
          error_data: { details: 'More than 24 hours' },
        },
      },
      at: new Date(1_790_000_000_900),
    });
    expect(id).toBe('local:17');
    expect(JSON.parse(dataJson)).toEqual({
      metadata: { display_phone_number: '12025550100', phone_number_id: '800000000000111' },
      status: {
        id: 'local:17',
        status: 'failed',
        timestamp: '1790000000',
        recipient_id: '12025550143',
        biz_opaque_callback_data: 'mine',
        errors: [
          {
            code: 131047,
            title: 'Re-engagement message',
            message: 'Re-engagement message',
            error_data: { details: 'More than 24 hours' },
          },
        ],
      },
    });
    expect(JSON.parse(dataJson).status).toEqual(JSON.parse(statusJson));
  });
});

describe('the mark of a message', () => {
  test('is found in the statuses that repeat it, and nowhere else', () => {
    const status = { id: 'w', biz_opaque_callback_data: sendMarker('123') };
    expect(markedMessageId(JSON.stringify(status))).toBe('123');
    expect(markedMessageId(JSON.stringify(status, null, 2))).toBe('123');
    const inText = JSON.stringify({ text: '"biz_opaque_callback_data":"heliograph:9"' });
    for (const other of ['{}', '{"biz_opaque_callback_data":"x"}', inText]) {
      expect(markedMessageId(other)).toBeNull();
    }
  });
});
