import { timingSafeEqual } from 'node:crypto';
import { publicSetupId } from '../../platform/public-ids.ts';
import { nonceHash } from './dialog-state.ts';
import {
  type Attention,
  broughtWaba,
  type SetupChoice,
  type SetupLink,
  WORKING,
} from './setup-link-store.ts';

/** What a browser may not do with a link; `link_used`: another browser began, and upstream has authorized that. */
export type SetupRefusal = 'link_expired' | 'link_revoked' | 'link_used' | 'tenant_suspended';

/** What the customer is asked now; `token`: the WABA and its access token. */
type SetupAsk =
  | { for: 'start' | 'token' | 'retry' }
  | { for: SetupChoice['of']; options: SetupChoice['options'] }
  | { for: 'pin'; triesLeft: number };

/** A link as its page shows it to a browser. */
export type SetupVisit = Pick<
  SetupLink,
  'tenantId' | 'mode' | 'connections' | 'state' | 'failure' | 'wabaId' | 'phoneNumberId' | 'expiresAt'
> & {
  /** As the API names it. */
  id: string;
  businessName: string;
  attention: Attention[];
  refusal: SetupRefusal | null;
  /** Null: nothing; wait, or it is over. */
  asks: SetupAsk | null;
  /** A workflow is at it. */
  isWorking: boolean;
  /** Back to the product, with how it went; null: it goes on. */
  returnUrl: string | null;
};

export type TenantOfLink = { businessName: string; isSuspended: boolean };

export const MOST_PINS = 3;

/** `nonce`: what the browser has in its cookie for this link. */
export function visitOf(link: SetupLink, tenant: TenantOfLink, nonce: string | undefined): SetupVisit {
  const isOwn = isOwnLink(link, nonce);
  const refusal = refusalOf(link, tenant, isOwn);
  return {
    id: publicSetupId(link.id),
    businessName: tenant.businessName,
    tenantId: link.tenantId,
    mode: link.mode,
    connections: link.connections,
    state: link.state,
    failure: link.failure,
    wabaId: broughtWaba(link),
    phoneNumberId: link.phoneNumberId,
    expiresAt: link.expiresAt,
    attention: link.attention,
    refusal,
    asks: refusal === null ? askOf(link, isOwn) : null,
    isWorking: refusal === null && isAtWork(link),
    returnUrl: returnUrlOf(link),
  };
}

export function isOwnLink(link: Pick<SetupLink, 'nonceHash'>, nonce: string | undefined): boolean {
  return link.nonceHash !== null && nonce !== undefined && timingSafeEqual(link.nonceHash, nonceHash(nonce));
}

export function refusalOf(
  { state, authorizedAt }: Pick<SetupLink, 'state' | 'authorizedAt'>,
  { isSuspended }: Pick<TenantOfLink, 'isSuspended'>,
  isOwn: boolean,
): SetupRefusal | null {
  if (state === 'revoked') return 'link_revoked';
  if (state === 'expired') return 'link_expired';
  if (isSuspended && state !== 'done') return 'tenant_suspended';
  return authorizedAt !== null && !isOwn ? 'link_used' : null;
}

function isAtWork({ state, choice }: SetupLink): boolean {
  return WORKING.includes(state) && choice === null;
}

function askOf(link: SetupLink, isOwn: boolean): SetupAsk | null {
  const { state, mode, authorizedAt, choice, failure, pinTries } = link;
  if (authorizedAt === null) {
    return { for: isOwn && state === 'started' && mode === 'steps' ? 'token' : 'start' };
  }
  if (choice !== null) return { for: choice.of, options: choice.options };
  if (state !== 'failed' || failure === null || !failure.retryable) return null;
  if (failure.code === 'pin_required') return { for: 'pin', triesLeft: MOST_PINS - pinTries };
  return isTooEarly(link) ? null : { for: 'retry' };
}

/** Upstream said how long it refuses. */
export function isTooEarly({ failure }: Pick<SetupLink, 'failure'>): boolean {
  return failure?.retryAt != null && Date.parse(failure.retryAt) > Date.now();
}

const OVER: Partial<Record<SetupLink['state'], string>> = {
  expired: 'link_expired',
  revoked: 'link_revoked',
};

/** For convenience only: who wants to know what happened asks the API, or reads the feed. */
function returnUrlOf(link: SetupLink): string | null {
  const { state, failure, phoneNumberId, clientState, successUrl, failureUrl } = link;
  const isOver = ['done', 'failed', 'cancelled', 'expired', 'revoked'].includes(state);
  if (!isOver) return null;
  const url = new URL(state === 'done' ? successUrl : failureUrl);
  const parameters = {
    setupLink: publicSetupId(link.id),
    status: state,
    wabaId: broughtWaba(link),
    phoneNumberId,
    code: state === 'done' ? null : (OVER[state] ?? failure?.code ?? null),
    state: clientState,
  };
  for (const [name, value] of Object.entries(parameters))
    if (value !== null) url.searchParams.set(name, value);
  return url.href;
}
