import type { Browser, Page } from 'playwright-core';
import { description } from './stack.ts';

/** A page of somebody who signed in with what `npm start` printed. */
export async function portalWindow(
  chrome: Browser,
  role: 'operator' | 'admin',
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<Page> {
  const { apiUrl, portalUsers } = description();
  const user = portalUsers.find((one) => one.role === role);
  if (user === undefined) throw new Error(`the demonstration has no ${role}`);
  const context = await chrome.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  await page.goto(`${apiUrl}/portal/sign-in`);
  await page.getByLabel('E-mail address').fill(user.email);
  await page.getByLabel('Password').fill(user.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  return page;
}
