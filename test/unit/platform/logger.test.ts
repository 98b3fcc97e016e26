import { describe, expect, test } from 'vitest';
import { sendErrorText } from '../../../src/features/messages/send/send-error.ts';
import { maskMessageIds, openLogger } from '../../../src/platform/logger.ts';

const WAMID = 'wamid.HBgLMTIwMjU1NTAxNDMVAgARGBI2RTA1MzAwNDMzRjg2NjhFQ0MA+/A=';

describe('a log', () => {
  test('shows a digest in place of an upstream message id, wherever it stands and however it is written', () => {
    const lines: string[] = [];
    const logger = openLogger({ logLevel: 'info' }, 'test', { write: (line) => void lines.push(line) });
    logger.info({ path: `/api/${encodeURIComponent(WAMID)}`, eventId: `${WAMID}_media` }, `of ${WAMID}`);
    logger.warn({ err: new Error(`no ${WAMID}`) }, 'failed');
    const text = lines.join('');
    expect(text).not.toContain('HBgLMTIw');
    const digests = text.match(/wamid#[0-9a-f]{12}/g) ?? [];
    expect(digests.length).toBeGreaterThanOrEqual(4);
    expect(new Set(digests)).toEqual(new Set([maskMessageIds(WAMID)]));
    expect(text).toContain(`${maskMessageIds(WAMID)}_media`);
  });

  test('differs for different ids and leaves other texts alone', () => {
    expect(maskMessageIds('wamid.A')).not.toBe(maskMessageIds('wamid.B'));
    expect(maskMessageIds('test_1 wamid')).toBe('test_1 wamid');
  });
});

test('what upstream says of a refused message quotes no recipient in logs and histories', () => {
  const message = `(#131026) +12025550143 of ${WAMID} cannot get it`;
  expect(sendErrorText({ message })).toBe(`(#131026) … of ${maskMessageIds(WAMID)} cannot get it`);
});
