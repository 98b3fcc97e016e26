import { test } from 'vitest';
import { query } from '../../../src/database/sql.ts';
import { startSendingStack, textTo } from './sending-stack.ts';
test('debug', async () => {
  const stack = await startSendingStack({ HELIOGRAPH_SEND_MESSAGES_PER_SECOND: '10' });
  const at = performance.now();
  await Promise.all(Array.from({ length: 40 }, async (_, n) => { const r = await stack.send(textTo()); console.log(n, r.status, Math.round(performance.now() - at)); }));
  console.log(await query(stack.database, `select message_id, state, attempts, extract(epoch from number_at-created_at) n, extract(epoch from finished_at-created_at) f from outbound_messages order by number_at`));
  await stack.stop();
});
