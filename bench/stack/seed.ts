import { createTenant } from '../../src/accounts/accounts.ts';
import { addWaba } from '../../src/accounts/wabas.ts';
import { storeEndpoint } from '../../src/endpoints/endpoints.ts';
import type { StoredEndpointOptions } from '../../src/endpoints/store.ts';
import { SYSTEM } from '../../src/platform/audit/audit.ts';
import type { SealedDatabase } from '../../src/platform/crypto/secret-keys.ts';
import type { Target } from '../run-plan.ts';

/** `endpoint` is the position of its URL. */
export type SeededTarget = Target & { endpointId: string; endpoint: number };

/** One tenant, WABA, number and endpoint per URL, so that a body for a number reaches exactly one endpoint. */
export async function seedTargets(
  accounts: SealedDatabase,
  firstNumber: number,
  urls: readonly string[],
  options: Partial<StoredEndpointOptions> = {},
): Promise<SeededTarget[]> {
  const tools = { ...accounts, actor: SYSTEM };
  const targets: SeededTarget[] = [];
  for (const [index, url] of urls.entries()) {
    const suffix = String(firstNumber + index).padStart(6, '0');
    const wabaId = `900000000${suffix}`;
    const phoneNumberId = `800000000${suffix}`;
    const { userId } = await createTenant(tools, `Bench ${suffix}`);
    const number = { phoneNumberId, displayPhoneNumber: '12025550100', verifiedName: `Bench ${suffix}` };
    await addWaba(tools, userId, { wabaId, phoneNumbers: [number], accessToken: null });
    const { id: endpointId } = await storeEndpoint(tools, wabaId, {
      url,
      description: 'bench',
      eventTypes: null,
      ...options,
    });
    targets.push({ wabaId, phoneNumberId, endpointId, endpoint: index });
  }
  return targets;
}
