import { test } from 'vitest';
import { expectOneMessageEach } from './broadcast-kills.ts';

const LIMIT_MS = 20 * 60_000;

test(
  'three killed workers and a revoked token: each of 5,000 recipients gets one message, and the report says so',
  async () => {
    await expectOneMessageEach(5_000, 200);
  },
  LIMIT_MS,
);
