import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import { SecretBoxError } from '../../platform/crypto/secret-box.ts';
import type { GraphClient } from '../../platform/graph/graph-client.ts';
import type { GraphError } from '../../platform/graph/graph-error.ts';
import type { SignupApp } from '../../platform/graph/graph-setup.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { AccessTokenProblem, openAccessToken } from '../accounts/access-tokens.ts';
import type { Attention, SetupChange, SetupLink } from './setup-link-store.ts';
import { SetupProblem } from './setup-problem.ts';

/** What the self-check found of a WABA; `problem`: why webhooks of it would not arrive, null: they would. */
export type SetupCheck = { problem: string | null; isSure: boolean; attention: Attention[] };

export type StepTools = SealedDatabase & {
  graph: Pick<
    GraphClient,
    | 'listPhoneNumbers'
    | 'listSubscribedApps'
    | 'readNumberSetup'
    | 'readTokenRights'
    | 'readWabaName'
    | 'registerNumber'
    | 'subscribeApp'
    | 'syncBusinessApp'
  >;
  signup: SignupApp | null;
  callback: { callbackUrl: string; verifyToken: string };
  selfCheck(wabaId: string): Promise<SetupCheck>;
};

/** What a step leads to; `before` is done in the same transaction, before the link is locked. */
export type StepResult = { change: SetupChange; before?: (trx: Transaction) => Promise<void> };

/** Upstream is asked again after this. */
export class AgainLater extends Error {
  readonly retryAfterMs: number | null;
  constructor(message: string, retryAfterMs: number | null = null) {
    super(message);
    this.name = 'AgainLater';
    this.retryAfterMs = retryAfterMs;
  }
}

export type Account = { wabaId: string; phoneNumberId: string; token: string };

/** The WABA that the link has brought, with its token. */
export async function accountOf(tools: StepTools, { wabaId, phoneNumberId }: SetupLink): Promise<Account> {
  if (wabaId === null || phoneNumberId === null) throw gone();
  try {
    return { wabaId, phoneNumberId, token: await openAccessToken(tools, wabaId) };
  } catch (error) {
    throw error instanceof AccessTokenProblem || error instanceof SecretBoxError ? gone() : error;
  }
}

function gone(): SetupProblem {
  const message = 'The WABA is not here any more, or its access token cannot be used. Begin again.';
  return new SetupProblem('waba', 'permission_missing', message, { isFromStart: true });
}

export function codeOf({ code, httpStatus }: GraphError): string {
  return code === null ? `HTTP ${httpStatus ?? 'without an answer'}` : `#${code}`;
}
