import fc from 'fast-check';
import { expect, test } from 'vitest';
import { apiOfFile } from '../api-harness.ts';
import { fresh, type PlatformClient, platformClient } from './platform-client.ts';

const api = apiOfFile();

/** What a few calls come to, whatever their order: each has a name, a WABA and a key out of two. */
type Step =
  | { do: 'putTenant'; name: number; business: string }
  | { do: 'suspend' | 'resume' | 'removeTenant'; name: number }
  | { do: 'rename'; name: number; to: number }
  | { do: 'putWaba' | 'removeWaba'; name: number; waba: number }
  | { do: 'putKey' | 'rotate' | 'deleteKey'; name: number; waba: number; key: number };

type Waba = { keys: Map<number, { rotations: number }> };
type Tenant = { business: string; isSuspended: boolean; wabas: Map<number, Waba> };

const two = fc.integer({ min: 0, max: 1 });
const steps = fc.oneof(
  fc.record({ do: fc.constant('putTenant' as const), name: two, business: fc.constantFrom('Acme', 'Bolt') }),
  fc.record({
    do: fc.constantFrom('suspend' as const, 'resume' as const, 'removeTenant' as const),
    name: two,
  }),
  fc.record({ do: fc.constant('rename' as const), name: two, to: two }),
  fc.record({ do: fc.constantFrom('putWaba' as const, 'removeWaba' as const), name: two, waba: two }),
  fc.record({
    do: fc.constantFrom('putKey' as const, 'rotate' as const, 'deleteKey' as const),
    name: two,
    waba: two,
    key: two,
  }),
);

/** The model, and the status that each step has by it. A WABA that nothing was made of is gone with its removal, and anyone's. */
class Model {
  readonly tenants = new Map<number, Tenant>();

  apply(step: Step): number {
    const tenant = this.tenants.get(step.name);
    if (step.do === 'putTenant') {
      if (tenant !== undefined) tenant.business = step.business;
      else this.tenants.set(step.name, { business: step.business, isSuspended: false, wabas: new Map() });
      return tenant === undefined ? 201 : 200;
    }
    if (tenant === undefined) return 404;
    if ('waba' in step) return this.ofWaba(tenant, step);
    if (step.do === 'removeTenant') this.tenants.delete(step.name);
    else if (step.do === 'rename') {
      if (step.to !== step.name && this.tenants.has(step.to)) return 409;
      this.tenants.delete(step.name);
      this.tenants.set(step.to, tenant);
    } else tenant.isSuspended = step.do === 'suspend';
    return 200;
  }

  ofWaba(tenant: Tenant, step: Extract<Step, { waba: number }>): number {
    const waba = tenant.wabas.get(step.waba);
    if (step.do === 'putWaba') {
      if ([...this.tenants.values()].some((one) => one !== tenant && one.wabas.has(step.waba))) return 409;
      if (waba === undefined) tenant.wabas.set(step.waba, { keys: new Map() });
      return waba === undefined ? 201 : 200;
    }
    if (waba === undefined) return 404;
    if (step.do === 'removeWaba') return tenant.wabas.delete(step.waba) ? 200 : 404;
    if (!('key' in step)) throw new Error('the step names no key');
    const key = waba.keys.get(step.key);
    if (step.do === 'putKey') {
      if (key === undefined && tenant.isSuspended) return 403;
      if (key === undefined) waba.keys.set(step.key, { rotations: 0 });
      return key === undefined ? 201 : 200;
    }
    if (key === undefined) return 404;
    if (step.do === 'deleteKey') return waba.keys.delete(step.key) ? 200 : 404;
    if (tenant.isSuspended) return 403;
    key.rotations += 1;
    return 200;
  }
}

type Names = { tenants: [string, string]; wabas: [string, string] };

async function perform(ask: PlatformClient, { tenants, wabas }: Names, step: Step): Promise<number> {
  const tenant = `/tenants/${tenants[step.name]}`;
  const waba = 'waba' in step ? `${tenant}/wabas/${wabas[step.waba]}` : '';
  const key = 'key' in step ? `${waba}/keys/key-${step.key}` : '';
  const calls = {
    putTenant: () => ask('PUT', tenant, { businessName: 'business' in step ? step.business : '' }),
    suspend: () => ask('PATCH', tenant, { state: 'suspended' }),
    resume: () => ask('PATCH', tenant, { state: 'active' }),
    rename: () => ask('PATCH', tenant, { newExternalId: 'to' in step ? tenants[step.to] : '' }),
    removeTenant: () => ask('DELETE', tenant, { confirm: tenants[step.name] }),
    putWaba: () => ask('PUT', waba, {}),
    removeWaba: () => ask('DELETE', waba),
    putKey: () => ask('PUT', key, { name: 'shop', scopes: ['send'] }),
    rotate: () => ask('POST', `${key}/rotate`, { overlapHours: 0 }),
    deleteKey: () => ask('DELETE', key),
  };
  return (await calls[step.do]()).status;
}

test('any sequence of calls answers and ends as the model says', async () => {
  const ask = await platformClient(api);
  const run = fc.asyncProperty(fc.array(steps, { minLength: 5, maxLength: 25 }), async (sequence) => {
    const [one, other] = [fresh(), fresh()];
    const names: Names = { tenants: [one.name, other.name], wabas: [one.wabaId, other.wabaId] };
    const model = new Model();
    for (const [turn, step] of sequence.entries()) {
      expect([turn, step, await perform(ask, names, step)]).toEqual([turn, step, model.apply(step)]);
    }
    for (const [index, name] of names.tenants.entries()) {
      const expected = model.tenants.get(index);
      const { status, body } = await ask('GET', `/tenants/${name}`);
      expect(status).toBe(expected === undefined ? 404 : 200);
      if (expected === undefined) continue;
      expect(body.businessName).toBe(expected.business);
      expect(body.state).toBe(expected.isSuspended ? 'suspended' : 'active');
      const wabas = [...expected.wabas.keys()].map((waba) => names.wabas[waba as 0 | 1]);
      expect(body.wabas.map(({ wabaId }: { wabaId: string }) => wabaId)).toEqual(wabas.sort());
    }
  });
  await fc.assert(run, { numRuns: 25 });
});
