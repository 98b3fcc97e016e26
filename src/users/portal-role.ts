/** What people may do in the portal: run the installation, administer a tenant, or look at a tenant's affairs. */
export const PORTAL_ROLES = ['operator', 'admin', 'member'] as const;

export type PortalRole = (typeof PORTAL_ROLES)[number];
