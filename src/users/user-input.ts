import { checkingMember, checkName, invalidValue, shown } from '../platform/request-input.ts';

/** As HTML's input type=email has it, and ASCII only: two spellings of one address must not be two users. */
const EMAIL = /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*$/;
const MAX_EMAIL_CHARS = 254;

/** An e-mail address in the form that users are stored under; null when it can be none. */
export function emailOf(text: string): string | null {
  const email = text.trim().toLowerCase();
  return email.length <= MAX_EMAIL_CHARS && EMAIL.test(email) ? email : null;
}

/** As `emailOf`. Throws RequestError `invalid_value`. */
export function checkEmail(text: string): string {
  const email = emailOf(text);
  if (email === null) throw invalidValue(`${shown(text)} is no e-mail address.`, 'email');
  return email;
}

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
