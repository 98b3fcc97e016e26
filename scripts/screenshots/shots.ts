import type { Shot } from './camera.ts';
import type { LivedPortal } from './live-portal.ts';

/** Every page once in light and wide, some dark, some as on a phone. */
export function shotsOf(lived: LivedPortal): Shot[] {
  const base = `/portal/w/${lived.wabaId}`;
  const endpoint = `${base}/endpoints/${lived.endpointId}`;
  const tenant = (name: string, path: string, more: Partial<Shot> = {}): Shot => ({
    name,
    who: 'admin',
    path: `${base}${path}`,
    ...more,
  });
  const operator = (name: string, path: string): Shot => ({
    name: `operator-${name}`,
    who: 'operator',
    path: `/portal/operator/${path}`,
  });
  return [
    { name: 'sign-in', who: null, path: '/portal/sign-in' },
    { name: 'sandbox-console', who: 'admin', path: '/portal/sandbox' },
    { name: 'readme-console', who: 'admin', path: '/portal/sandbox', maxHeight: 900 },
    tenant('overview', ''),
    tenant('endpoints', '/endpoints'),
    tenant('endpoint-new', '/endpoints/new'),
    { name: 'endpoint', who: 'admin', path: endpoint },
    { name: 'endpoint-edit', who: 'admin', path: `${endpoint}/edit` },
    {
      name: 'test-event',
      who: 'admin',
      path: endpoint,
      prepare: async (page) => {
        await page.getByRole('button', { name: 'Send test event' }).click();
        await page.waitForTimeout(3_000);
      },
    },
    tenant('alerts', '/endpoints/alerts'),
    tenant('deliveries', '/deliveries'),
    tenant('delivery', `/deliveries/${lived.failedDelivery}`),
    tenant('readme-delivery', `/deliveries/${lived.failedDelivery}`, { maxHeight: 940 }),
    tenant('replay-new', '/replays/new'),
    tenant('replay-counted', '/replays/new', {
      prepare: async (page) => {
        await page.getByRole('checkbox', { name: 'delivered' }).check();
        await page.getByRole('button', { name: 'Dry run' }).click();
        await page.getByRole('button', { name: /^Send .* again/ }).waitFor();
      },
    }),
    tenant('replay', '/replays/new', {
      prepare: async (page) => {
        await page.getByRole('checkbox', { name: 'delivered' }).check();
        await page.getByRole('button', { name: 'Dry run' }).click();
        await page.getByRole('button', { name: /^Send .* again/ }).click();
        await page.getByRole('heading', { name: /^Replay \d+/ }).waitFor();
        await page.waitForTimeout(4_000);
      },
    }),
    tenant('replays', '/replays'),
    tenant('event-types', '/event-types'),
    tenant('event-type', '/event-types/order'),
    tenant('conversations', '/conversations'),
    tenant('conversation', `/conversations/${lived.conversationId}`),
    tenant('keys', '/keys'),
    tenant('key-new', '/keys/new'),
    tenant('audit', '/audit'),
    tenant('users', '/users'),
    { name: 'account', who: 'admin', path: '/portal/account' },
    operator('health', 'health'),
    operator('tenants', 'tenants'),
    operator('tenant', 'tenants/1'),
    operator('waba', `wabas/${lived.wabaId}`),
    operator('approvals', 'approvals'),
    operator('approval', `approvals/${lived.keyRequestId}`),
    operator('deliveries', 'deliveries'),
    operator('users', 'users'),
    operator('settings', 'settings'),
    operator('audit', 'audit'),
    tenant('overview-dark', '', { isDark: true }),
    tenant('delivery-dark', `/deliveries/${lived.failedDelivery}`, { isDark: true }),
    tenant('conversation-dark', `/conversations/${lived.conversationId}`, { isDark: true }),
    tenant('overview-phone', '', { isPhone: true }),
    tenant('deliveries-phone', '/deliveries', { isPhone: true }),
    tenant('conversation-phone', `/conversations/${lived.conversationId}`, { isPhone: true, isDark: true }),
  ];
}
