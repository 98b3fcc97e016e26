import { expect } from 'vitest';
import type { TestApi } from '../../api/api-harness.ts';
import { type PlatformClient, platformClient, tenantOf } from '../../api/provisioning/platform-client.ts';
import { openBrowser, type PortalBrowser } from '../portal-browser.ts';

export const PRODUCT = 'https://crm.example';

export type Shop = Awaited<ReturnType<typeof shopOf>>;

/** A tenant of the operator's program, whose people come by links. */
export async function shopOf(api: TestApi, ask?: PlatformClient) {
  const program = ask ?? (await platformClient(api));
  const tenant = await tenantOf(program);
  const sessions = `/tenants/${tenant.name}/portal-sessions`;
  const link = async (given: object = {}) => {
    const user = { externalId: 'u_17', email: 'asha@store.example', name: 'Asha' };
    const wanted = { user, role: 'admin', refreshUrl: `${PRODUCT}/portal`, ...given };
    return await program('POST', sessions, wanted);
  };
  return { ...tenant, program, sessions, link, path: `/portal/w/${tenant.wabaId}` };
}

/** The path of a link that was made. */
export function pathOfLink({ status, body }: Awaited<ReturnType<Shop['link']>>): string {
  expect([status, body.error]).toEqual([201, undefined]);
  return new URL(body.url).pathname;
}

/** Opens the portal by a new link, in a browser of its own unless one is given. */
export async function visitBy(
  api: TestApi,
  shop: Shop,
  given: object = {},
  browser: PortalBrowser = openBrowser(api.app),
): Promise<PortalBrowser> {
  const path = pathOfLink(await shop.link(given));
  await browser.get(path);
  const opened = await browser.post(path);
  expect(opened.statusCode).toBe(303);
  return browser;
}
