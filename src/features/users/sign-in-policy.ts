import type { Config } from '../../platform/config/config.ts';
import type { OpenSession } from './user-sessions.ts';

export type SignInPolicy = Pick<Config['portal'], 'passwordSignIn' | 'secondFactor'>;

/** What a session is still to do: give a code, set up a second factor, begin again (`over`), or nothing (`whole`). */
export type SessionStep = 'whole' | 'code' | 'enrolment' | 'over';

type Judged = Pick<OpenSession, 'begunBy' | 'hasSecondFactor' | 'isNew' | 'proofs' | 'places'>;

export function isSecondFactorRequired(policy: SignInPolicy, { places }: Pick<Judged, 'places'>): boolean {
  const isOperator = places.some(({ tenantId }) => tenantId === null);
  return policy.secondFactor === 'all' || (policy.secondFactor === 'operators' && isOperator);
}

/**
 * Judged with each request, so that a setting, a factor or a right counts at once. A provider asks for its own
 * factors: only where the installation demands one, and the provider does not vouch for it, is it asked for here too.
 */
export function stepOf(policy: SignInPolicy, session: Judged): SessionStep {
  const isByPassword = session.begunBy !== 'oidc' && session.begunBy !== 'platform';
  if (isByPassword && !policy.passwordSignIn) return 'over';
  if (session.hasSecondFactor) return 'whole';
  const isDue = isSecondFactorRequired(policy, session) || (isByPassword && session.proofs.totp);
  if (!isDue) return 'whole';
  if (!session.isNew || session.begunBy === 'platform') return 'over';
  return session.proofs.totp ? 'code' : 'enrolment';
}
