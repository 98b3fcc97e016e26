import { describe, expect, test } from 'vitest';
import type { Viewer } from '../../../../src/api/portal/access/viewer.ts';
import { deliveryTable } from '../../../../src/api/portal/deliveries/delivery-table.ts';
import { modeBadge, modeSentence } from '../../../../src/api/portal/endpoints/endpoint-status.ts';
import type { ListedDelivery } from '../../../../src/features/delivery-log/deliveries.ts';

const at = new Date('2026-11-20T10:00:00Z');
const HEALTHY = { mode: 'open', failingSince: null } as const;

describe('the status of an endpoint', () => {
  test('is "Active" where all is well: in a circuit breaker, open is the broken state', () => {
    expect(modeBadge(HEALTHY).toString()).toContain('Active');
    const states = [
      HEALTHY,
      { mode: 'open', failingSince: at },
      { ...HEALTHY, recoveringSince: at },
      { mode: 'probing', failingSince: at },
      { mode: 'paused', failingSince: null },
      { mode: 'disabled', failingSince: at },
    ] as const;
    for (const state of states) {
      const words = `${modeBadge(state)} ${modeSentence(state)}`;
      expect(words).not.toMatch(/\bopen\b/i);
      expect([state, /\bActive\b/.test(words)]).toEqual([state, state === HEALTHY]);
    }
  });
});

const URL = 'https://hooks.shop.example/in/4f1c';

function endpointColumn(role: 'admin' | 'member', endpointDescription: string | null): string {
  const viewer = { role, link: null } as Viewer;
  const delivery = {
    id: '01934b7e-0000-7000-8000-000000000000',
    wabaId: '900000000000101',
    businessName: 'Fixture Store',
    eventType: 'message',
    eventId: 'wamid.1',
    state: 'delivered',
    attempts: 1,
    endpointId: '3',
    endpointUrl: URL,
    endpointDescription,
    createdAt: at,
    nextAttemptAt: null,
    lastDurationMs: 12,
    lastStatusCode: 200,
    lastError: null,
    replayId: null,
  } as ListedDelivery;
  const view = {
    viewer,
    deliveries: [delivery],
    now: at,
    hrefOf: () => '#',
    withOwner: false,
    withEndpoint: true,
  };
  return deliveryTable(view).toString();
}

describe('a list of deliveries names an endpoint as people know it', () => {
  test('by its description, to everybody', () => {
    for (const role of ['admin', 'member'] as const) {
      expect(endpointColumn(role, 'Order system')).toMatch(/>Order system<[\s\S]*>endpoint 3</);
    }
  });

  test('else by its URL, whose path only those see who may change it', () => {
    const shown = endpointColumn('admin', null);
    expect(shown).toContain(`title="${URL}"`);
    expect(shown).toContain('3: /in/4f1c');
    expect(shown).not.toContain('/***');
    expect(endpointColumn('member', null)).not.toContain('4f1c');
  });
});
