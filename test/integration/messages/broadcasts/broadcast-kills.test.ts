import { test } from 'vitest';
import { expectOneMessageEach } from './broadcast-kills.ts';

test('three killed workers and a revoked token: each of 300 recipients gets one message, and the report says so', async () => {
  await expectOneMessageEach(300, 20);
});
