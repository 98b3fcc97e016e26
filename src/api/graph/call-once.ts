import type { FastifyRequest } from 'fastify';
import { noteTokenRefused } from '../../features/accounts/access-tokens.ts';
import { isTokenError } from '../../platform/graph/graph-error.ts';
import type { PassedAnswer, PassedCall } from '../../platform/graph/graph-pass.ts';
import { membersOf } from '../../platform/json/json-members.ts';
import { openRateLimitStore } from '../../platform/postgres/rate-limit-store.ts';
import type { ExternalContext } from '../external/external-app.ts';
import { callUpstream } from '../external/upstream-calls.ts';
import { accountOf } from '../keys/api-key-auth.ts';
import type { OwnObject } from './allowed-calls.ts';
import { answerForTenant } from './answer-text.ts';
import { recordPassedChange } from './change-audit.ts';
import { errorJson, errorParts, FacadeError, refusedOtherwise } from './facade-error.ts';
import { facadeUrl, type ObjectRoute } from './facade-paths.ts';

/** Upstream allows 5,000 calls an hour for a WABA; what the service asks for itself needs some of them. */
const CALLS_PER_HOUR = 4_000;

/** Until when upstream has asked WABAs to wait. */
export type Limits = { context: ExternalContext; pauses: Map<string, number> };

/** A call that was found harmless, and what it is about; null: it changes nothing that a WABA has. */
export type HarmlessCall = Omit<PassedCall, 'token'> & { object: OwnObject | null };

/** Calls upstream within its limits. The answer holds neither the token nor an address of upstream's pages. */
export async function callOnce(
  pass: Limits,
  request: FastifyRequest<ObjectRoute>,
  call: HarmlessCall,
): Promise<PassedAnswer> {
  const { context } = pass;
  const { wabaId } = accountOf(request);
  await keepWithinLimits(pass, wabaId);
  let used = '';
  const note = async (status: number | null) => {
    const { object } = call;
    if (call.method === 'GET' || object === null) return;
    await recordPassedChange(context.database, request, { ...call, object }, status);
  };
  const passed = await callUpstream(context, wabaId, (client, token) => {
    used = token;
    return client.passOn({ ...call, token });
  }).catch(async (error: unknown) => {
    // Without a response, upstream may have changed it all the same.
    if (used !== '') await note(null);
    throw error;
  });
  await note(passed.status);
  const own = { baseUrl: facadeUrl(context, request), token: used, queryToken: request.queryToken };
  const text = answerForTenant(passed.text, own);
  if (text === null && passed.status < 300) {
    const message = '(#2) The answer of the platform cannot be read';
    throw new FacadeError({ status: 502, code: 2, message });
  }
  const answered = { ...passed, text: text ?? '{}' };
  return passed.status < 300 ? answered : await refusedAnswer(pass, wabaId, answered);
}

const THROTTLED = new Set([4, 17, 613, 80_007, 80_008]);
const PAUSE_MS = 60_000;

async function refusedAnswer(pass: Limits, wabaId: string, refused: PassedAnswer): Promise<PassedAnswer> {
  const { code } = membersOf(membersOf(JSON.parse(refused.text)).error);
  if (refused.status === 429 || (typeof code === 'number' && THROTTLED.has(code))) {
    pass.pauses.set(wabaId, Date.now() + PAUSE_MS);
  }
  const known = typeof code === 'number' ? code : null;
  if (!isTokenError({ httpStatus: refused.status, code: known })) {
    if (known === null) throw refusedOtherwise(refused.status);
    return refused;
  }
  // To the client, code 190 would mean its own key: it is the operator who has to act.
  await noteTokenRefused(pass.context.database, wabaId, 'The upstream platform refused the access token.');
  const parts = errorParts(131_000, 'The WABA has no usable upstream access token.');
  return { ...refused, status: parts.status, text: errorJson(parts, '') };
}

/** Throws FacadeError while upstream has asked to wait, or when an hour's calls are used up. */
async function keepWithinLimits({ context, pauses }: Limits, wabaId: string): Promise<void> {
  const until = pauses.get(wabaId) ?? 0;
  if (until > Date.now()) throw throttled('The platform has asked to wait: ask again in a minute.');
  pauses.delete(wabaId);
  const calls = openRateLimitStore(context.database, { kind: 'graph_call', windowSeconds: 3_600 });
  const { consumed } = await calls.add(wabaId, 1);
  if (consumed > CALLS_PER_HOUR) throw throttled(`A WABA has ${CALLS_PER_HOUR} such calls an hour.`);
}

function throttled(details: string): FacadeError {
  return new FacadeError(errorParts(80_008, details, 429));
}
