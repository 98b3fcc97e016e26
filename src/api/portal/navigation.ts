import type { Viewer } from './access/viewer.ts';

/** One entry of the navigation. */
export type NavigationEntry = { key: string; label: string; href: string };

/** The WABA whose pages are shown. */
export type WabaInView = { wabaId: string; businessName: string };

const TENANT_PAGES = [
  ['overview', 'Overview', ''],
  ['endpoints', 'Webhooks', '/endpoints'],
  ['deliveries', 'Deliveries', '/deliveries'],
  ['replays', 'Replays', '/replays'],
  ['conversations', 'Conversations', '/conversations'],
  ['event-types', 'Event types', '/event-types'],
  ['keys', 'API keys', '/keys'],
  ['audit', 'Audit log', '/audit'],
] as const;

const OPERATOR_PAGES = [
  ['operator/health', 'System health', '/health'],
  ['operator/tenants', 'Tenants', '/tenants'],
  ['operator/approvals', 'Approvals', '/approvals'],
  ['operator/deliveries', 'All deliveries', '/deliveries'],
  ['operator/users', 'Users', '/users'],
  ['operator/settings', 'Settings', '/settings'],
  ['operator/audit', 'Audit log', '/audit'],
] as const;

/** In development only: where everything can be tried. */
export const SANDBOX_ENTRY = { key: 'sandbox', label: 'Sandbox console', href: '/portal/sandbox' };

/** The pages of one WABA that this viewer may open. */
export function tenantNavigation(viewer: Viewer, { wabaId }: WabaInView): NavigationEntry[] {
  const base = `/portal/w/${encodeURIComponent(wabaId)}`;
  const entries = TENANT_PAGES.map(([key, label, path]) => ({ key, label, href: `${base}${path}` }));
  const users = { key: 'users', label: 'Users', href: `${base}/users` };
  return viewer.role === 'member' ? entries : [...entries, users];
}

/** The pages of the operator. */
export function operatorNavigation(): NavigationEntry[] {
  return OPERATOR_PAGES.map(([key, label, path]) => ({ key, label, href: `/portal/operator${path}` }));
}
