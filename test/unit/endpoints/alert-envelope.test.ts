import { describe, expect, test } from 'vitest';
import { alertHeaders, serializeAlert } from '../../../src/ops/alerts/alert-envelope.ts';
import { isSameTarget } from '../../../src/platform/http/same-target.ts';
import { repositoryFile } from '../deployment/compose-file.ts';

const ENVELOPE = {
  alertId: 'alr_019a1b2c3d4e7f5061728394a5b6c7d8',
  alert: 'failing' as const,
  occurredAt: new Date('2026-11-21T09:30:00.123Z'),
  userId: '1',
  wabaId: '900000000000101',
  endpoint: {
    id: '3',
    url: 'https://shop.example/***b1c43b',
    description: 'order system',
    mode: 'probing',
    modeReason: 'most attempts fail: 14 of the last 16',
  },
  reason: 'most attempts fail: 14 of the last 16',
  waiting: 1204,
  details: {},
};
const HEADERS = alertHeaders({
  alertId: ENVELOPE.alertId,
  alert: 'failing',
  timestampSeconds: 1_795_253_400,
  signature: 'v1,x',
});

describe('an alert', () => {
  test('cannot be taken for an event', () => {
    expect(JSON.parse(serializeAlert(ENVELOPE))).not.toHaveProperty('eventType');
    expect(Object.keys(HEADERS).filter((name) => name.toLowerCase().startsWith('x-service-event'))).toEqual(
      [],
    );
  });

  test('is documented as it is made', () => {
    const [, example] =
      /<!-- example: endpoint alert -->\n```json\n([\s\S]*?)\n```/.exec(
        repositoryFile('docs/tenants/endpoint-alerts.md'),
      ) ?? [];
    expect(example).toBe(JSON.stringify(JSON.parse(serializeAlert(ENVELOPE)), null, 2));
  });

  test('its headers are documented', () => {
    const document = repositoryFile('docs/tenants/endpoint-alerts.md').toLowerCase();
    for (const name of Object.keys(HEADERS)) expect(document).toContain(`\`${name.toLowerCase()}\``);
  });
});

describe('two URLs lead to the same receiver', () => {
  const url = 'https://shop.example/hooks/a';
  test.each([
    'https://shop.example/hooks/a/',
    'https://shop.example/hooks/a?key=1',
    'http://shop.example/hooks/a',
    'https://shop.example./hooks/a',
    'https://SHOP.example/hooks/%61',
  ])('%s', (other) => expect(isSameTarget(url, other)).toBe(true));

  test.each([
    'https://shop.example/hooks/b',
    'https://shop.example/',
    'https://other.example/hooks/a',
    'https://shop.example:8443/hooks/a',
    'https://shop.example/hooks/A',
    'https://shop.example/%E0%A4%A',
    'not a URL',
  ])('but not %s', (other) => expect(isSameTarget(url, other)).toBe(false));

  test('what is no URL leads nowhere, also not to itself', () => expect(isSameTarget('x', 'x')).toBe(false));
});
