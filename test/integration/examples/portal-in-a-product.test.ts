import type { Server } from 'node:http';
import { expect, test } from 'vitest';
import { makeProduct } from '../../../examples/product/server.ts';
import { freePort } from '../../acceptance/support/free-ports.ts';
import { launchChrome } from '../../support/browser.ts';
import { startTestApi, testConfig } from '../api/api-harness.ts';
import { addPlatformKey, clientWith, tenantOf } from '../api/provisioning/platform-client.ts';

/** The example as a reader runs it: a product with its own sign-in, Heliograph, and a browser. */

test('the page of the product has the customer’s webhooks in a frame, and of no other customer’s', async () => {
  const [port, own] = [await freePort(), await freePort()];
  const [gateway, origin] = [`http://127.0.0.1:${port}`, `http://localhost:${own}`];
  const api = await startTestApi(async () => ({
    config: testConfig({ HELIOGRAPH_PUBLIC_URL: gateway, HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: origin }),
  }));
  const { platformKey, authorization } = await addPlatformKey(api.database);
  const program = clientWith(api, authorization);
  const [acme, other] = [await tenantOf(program), await tenantOf(program)];
  await api.app.listen({ host: '127.0.0.1', port });
  const user = { externalId: 'u_17', email: 'asha@store.example', name: 'Asha' };
  const product: Server = makeProduct({
    gateway,
    platformKey,
    origin,
    signedIn: ({ headers }) => (headers.cookie === 'who=asha' ? { tenant: acme.name, user } : null),
  });
  await new Promise<void>((resolve) => product.listen(own, '127.0.0.1', resolve));
  const chrome = await launchChrome();
  try {
    const context = await chrome.newContext();
    const page = await context.newPage();
    expect((await page.goto(`${origin}/webhooks`))?.status()).toBe(401);
    await context.addCookies([{ name: 'who', value: 'asha', url: origin }]);
    for (let visit = 0; visit < 2; visit += 1) {
      await page.goto(`${origin}/webhooks`);
      await page.frameLocator('iframe').getByRole('heading', { name: 'Webhook Settings' }).waitFor();
      await page.frameLocator('iframe').getByRole('link', { name: 'Add endpoint' }).first().waitFor();
    }
    const frame = page.frames().at(-1);
    const foreign = await frame?.goto(`${gateway}/portal/w/${other.wabaId}`);
    expect(foreign?.status()).toBe(404);
    expect(await page.content()).not.toContain(platformKey);
  } finally {
    await chrome.close();
    product.close();
  }
});
