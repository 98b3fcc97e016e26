import { expect, test } from 'vitest';
import { type SessionStep, stepOf } from '../../../src/features/users/sign-in-policy.ts';

type Session = Parameters<typeof stepOf>[1];
type Given = Partial<Session> & { isOperator?: boolean; totp?: boolean };

function session({ isOperator = false, totp = false, ...given }: Given): Session {
  const place = { tenantId: isOperator ? null : '1', businessName: null, role: 'member' } as const;
  const proofs = { password: true, totp, identity: false };
  return { begunBy: 'password', hasSecondFactor: false, isNew: true, proofs, places: [place], ...given };
}

const CASES: [string, 'optional' | 'operators' | 'all', Given, SessionStep][] = [
  ['a password without a second factor', 'optional', {}, 'whole'],
  ['a password with one', 'optional', { totp: true }, 'code'],
  ['an invitation with one', 'optional', { totp: true, begunBy: 'invitation' }, 'code'],
  ['a password with one that was given', 'optional', { totp: true, hasSecondFactor: true }, 'whole'],
  ['a password whose code is long in coming', 'optional', { totp: true, isNew: false }, 'over'],
  ['a provider with one', 'optional', { totp: true, begunBy: 'oidc' }, 'whole'],
  ['a member where operators must', 'operators', {}, 'whole'],
  ['an operator where operators must', 'operators', { isOperator: true }, 'enrolment'],
  [
    'an operator by a provider where operators must',
    'operators',
    { isOperator: true, begunBy: 'oidc' },
    'enrolment',
  ],
  ['the same with one', 'operators', { isOperator: true, begunBy: 'oidc', totp: true }, 'code'],
  [
    'the same whose provider vouches for it',
    'operators',
    { isOperator: true, begunBy: 'oidc', hasSecondFactor: true },
    'whole',
  ],
  ['a member where all must', 'all', {}, 'enrolment'],
  ['a member whose session began before all must', 'all', { isNew: false }, 'over'],
];

test.each(CASES)('%s, %s', (_name, secondFactor, given, step) => {
  expect(stepOf({ passwordSignIn: true, secondFactor }, session(given))).toBe(step);
});

test('where passwords open nothing, no session that began with one holds', () => {
  const policy = { passwordSignIn: false, secondFactor: 'optional' } as const;
  const begun = ['password', 'invitation', 'set-up link', 'oidc'] as const;
  const steps = begun.map((begunBy) => stepOf(policy, session({ begunBy, hasSecondFactor: true })));
  expect(steps).toEqual(['over', 'over', 'over', 'whole']);
});
