import { expect, onTestFinished, test } from 'vitest';
import { NUMBER, startSendingStack, textTo } from '../messages/send/sending-stack.ts';
import { listen, stdioClient } from './mcp-clients.ts';

test('a message is sent once, however often a call with its idempotency key is repeated', async () => {
  const stack = await startSendingStack();
  onTestFinished(() => stack.stop());
  const environment = {
    HELIOGRAPH_URL: await listen(stack.app),
    HELIOGRAPH_API_KEY: stack.authorization.replace('Bearer ', ''),
  };
  const mcp = await stdioClient(environment, ['--allow', 'send']);
  onTestFinished(() => mcp.close());
  const { tools } = await mcp.client.listTools();
  const sendTool = tools.find(({ name }) => name === 'sendMessage');
  expect(sendTool?.annotations).toMatchObject({ readOnlyHint: false, destructiveHint: true });
  expect(tools.map(({ name }) => name)).not.toContain('pauseWebhookEndpoint');

  const message = { phoneNumberId: NUMBER, ...textTo(), idempotencyKey: 'order-7-ready' };
  const first = await mcp.call('sendMessage', message);
  expect([first.isError, first.text]).toEqual([false, expect.stringContaining('serviceMessageId')]);
  expect(await mcp.call('sendMessage', message)).toEqual(first);
  expect(await stack.sent()).toHaveLength(1);

  const refused = await mcp.call('sendMessage', { ...textTo(), phoneNumberId: '1' });
  expect(refused).toMatchObject({ isError: true, text: expect.stringContaining('"unknown_phone_number"') });
  expect(refused.text).toMatch(/pass idempotencyKey "[0-9a-f-]{36}"\.$/);
  const bad = await mcp.call('sendMessage', { phoneNumberId: NUMBER, ...textTo(), idempotencyKey: 'ü\n' });
  expect(bad).toMatchObject({ isError: true, text: expect.stringContaining('"invalid_parameter"') });
  expect(await stack.sent()).toHaveLength(1);
  // A program that handles numbers as numbers has lost zeros and digits already.
  for (const to of [12_025_550_143, 33_612_345_678.5, '1.2025550143e+10', '12025550143.0']) {
    const answer = await mcp.call('sendMessage', { ...message, to, idempotencyKey: `n${to}` });
    expect([to, answer]).toEqual([to, { isError: true, text: expect.stringMatching(/"param":"to"/) }]);
  }
  expect(await stack.sent()).toHaveLength(1);
});
