import type { AccountClient } from '../../../platform/graph/graph-client.ts';
import { GraphError } from '../../../platform/graph/graph-error.ts';
import type { PortalContext } from '../portal-app.ts';

/** What upstream answered: a value, a refusal, or nothing. */
export type GraphAnswer<Value> = { ok: true; value: Value } | { ok: false; refused: boolean; reason: string };

/** Asks upstream with a token; never throws for what upstream does. */
export async function callGraph<Value>(
  { upstream }: Pick<PortalContext, 'upstream'>,
  token: string | null,
  ask: (client: AccountClient, token: string) => Promise<Value>,
): Promise<GraphAnswer<Value>> {
  if (token === null) return { ok: false, refused: true, reason: 'There is no access token.' };
  try {
    return { ok: true, value: await ask(await upstream.client(), token) };
  } catch (error) {
    if (!(error instanceof GraphError)) throw error;
    const reason = error.transient
      ? `Upstream is not available at the moment: ${error.message}`
      : `Upstream refuses: ${error.message}`;
    return { ok: false, refused: !error.transient, reason };
  }
}
