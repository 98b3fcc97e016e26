import { expect, test } from 'vitest';
import { PUBLIC_URL, startTestApi, testConfig } from './api-harness.ts';

const PATH = '/.well-known/security.txt';

test('security.txt names the contacts of the operator as RFC 9116 has it, and expires within a year', async () => {
  const contacts = 'mailto:security@gateway.example, https://gateway.example/report';
  const config = testConfig({ HELIOGRAPH_SECURITY_CONTACTS: contacts });
  const { app } = await startTestApi(async () => ({ config }));
  const { statusCode, headers, body } = await app.inject(PATH);
  expect([statusCode, headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8']);
  const lines = body.split('\n');
  expect(lines.filter((line) => line.startsWith('Contact: '))).toEqual([
    'Contact: mailto:security@gateway.example',
    'Contact: https://gateway.example/report',
  ]);
  expect(lines).toContain(`Canonical: ${PUBLIC_URL}${PATH}`);
  const expires = lines.filter((line) => line.startsWith('Expires: ')).map((line) => line.slice(9));
  expect(expires).toHaveLength(1);
  expect(expires[0]).toMatch(/^\d{4}-\d\d-\d\dT00:00:00\.000Z$/);
  const days = (Date.parse(expires[0] ?? '') - Date.now()) / 86_400_000;
  expect(days).toBeGreaterThan(90);
  expect(days).toBeLessThan(365);
  expect(body.endsWith('\n')).toBe(true);
});

test('without a contact there is no security.txt', async () => {
  const { app } = await startTestApi();
  expect((await app.inject(PATH)).statusCode).toBe(404);
});
