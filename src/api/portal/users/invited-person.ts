import type { RequestError } from '../../../platform/request-input.ts';
import type { Invitation } from '../../../users/invitation-store.ts';
import { textField } from '../components/form.ts';
import { noticeBox } from '../components/notice.ts';
import { html, type Markup } from '../markup.ts';

/** The fields for a name, an e-mail address and a password. Left out: the address or name that is settled. */
export function personFields(given: {
  email?: string;
  name?: string;
  error: RequestError | null;
  /** What the password is called. */
  label?: string;
}): Markup {
  const { email, name, error, label = 'Password' } = given;
  const about = (field: string) => (error?.param === field ? error.message : null);
  const shown = [email !== undefined && 'email', name !== undefined && 'name', 'password'];
  const isAboutAll = error !== null && !shown.includes(error.param ?? '');
  return html`${isAboutAll && noticeBox({ kind: 'error', text: error.message })}
${email !== undefined && textField({ label: 'E-mail address', name: 'email', type: 'email', value: email, autocomplete: 'username', required: true, error: about('email') })}
${name !== undefined && textField({ label: 'Your name', name: 'name', value: name, autocomplete: 'name', required: true, maxLength: 200, error: about('name') })}
${textField({ label, name: 'password', type: 'password', autocomplete: 'new-password', required: true, maxLength: 256, hint: 'At least 12 characters; several words make a good one.', error: about('password') })}`;
}

/** What an invitation makes its user: "a member of Fixture Store". */
export function invitedAs({ role, businessName }: Pick<Invitation, 'role' | 'businessName'>): string {
  const rights = { operator: 'an operator', admin: 'an administrator', member: 'a member' };
  return `${rights[role ?? 'member']} of ${businessName ?? 'this installation'}`;
}
