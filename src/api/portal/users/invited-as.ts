import type { Invitation } from '../../../users/invitation-store.ts';

/** What an invitation makes somebody: "a member of Fixture Store". */
export function invitedAs({ role, businessName }: Pick<Invitation, 'role' | 'businessName'>): string {
  const rights = { operator: 'an operator', admin: 'an administrator', member: 'a member' };
  return `${rights[role ?? 'member']} of ${businessName ?? 'this installation'}`;
}
