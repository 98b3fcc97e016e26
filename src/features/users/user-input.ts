import { checkingMember, checkName, invalidValue, shown } from '../../platform/request-input.ts';

/** What a person is called. Throws RequestError `invalid_value`. */
export async function checkPersonName(text: string): Promise<string> {
  return await checkingMember('name', () => checkName('The name', text));
}

/** A role and the tenant that goes with it: all but operators have one. Throws RequestError `invalid_value`. */
export function checkRole(role: string, tenantId: string | null): PortalRole {
  const known = PORTAL_ROLES.find((one) => one === role);
  if (known === undefined) {
    throw invalidValue(`The role must be one of ${PORTAL_ROLES.join(', ')}, not ${shown(role)}.`, 'role');
  }
  if ((known === 'operator') !== (tenantId === null)) {
    throw invalidValue(
      known === 'operator'
        ? 'An operator belongs to no tenant.'
        : `A user of the role ${known} needs a tenant.`,
      'role',
    );
  }
  return known;
}

/** What people may do in the portal: run the installation, administer a tenant, or look at a tenant's affairs. */
const PORTAL_ROLES = ['operator', 'admin', 'member'] as const;

export type PortalRole = (typeof PORTAL_ROLES)[number];
