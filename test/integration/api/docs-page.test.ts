import { HtmlValidate } from 'html-validate';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { ERROR_CODES } from '../../../src/api/errors/error-codes.ts';
import { launchChrome } from '../../support/browser.ts';
import { apiOfFile } from './api-harness.ts';

const api = apiOfFile();
let base: string;

beforeAll(async () => {
  base = await api.app.listen({ host: '127.0.0.1', port: 0 });
});

/** A page of a real browser, what it said in the console and what it asked for. */
async function openPage(path: string): Promise<{ page: Page; said: string[]; asked: string[] }> {
  const browser = await launchChrome();
  onTestFinished(async () => await browser.close());
  const page = await browser.newPage();
  const said: string[] = [];
  const asked: string[] = [];
  page.on('console', (message) => said.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => said.push(String(error)));
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(`${base}${path}`);
  return { page, said, asked };
}

test('/docs/explorer shows and tries the API in a browser, asks nobody else, and breaks no rule of its strict policy', async () => {
  const { page, said, asked } = await openPage('/docs/explorer');
  await page.waitForSelector('#operations-Events-listEvents');
  expect(await page.title()).toContain('Heliograph');
  await page.click('#operations-Events-listEvents .opblock-summary');
  await page.waitForSelector('#operations-Events-listEvents .responses-table');
  await page.click('#operations-Service-testConnection .opblock-summary');
  await page.click('#operations-Service-testConnection .try-out__btn');
  await page.click('#operations-Service-testConnection .execute');
  const answer = page.locator('#operations-Service-testConnection .live-responses-table');
  await answer.waitFor();
  expect(await answer.textContent()).toContain('"status": "ok"');
  expect(asked).toContain(`${base}/api/external/test`);
  expect(asked.filter((url) => !url.startsWith(base) && !url.startsWith('data:'))).toEqual([]);
  expect(said).toEqual([]);
  const { 'content-security-policy': policy } = (await api.app.inject('/docs/explorer')).headers;
  expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
  expect(policy).not.toContain('unsafe');
});

describe('the pages', () => {
  test.each(['/', '/docs/errors'])('%s is sound HTML with its looks from here', async (path) => {
    const { payload, headers } = await api.app.inject(path);
    const report = await new HtmlValidate({ extends: ['html-validate:recommended'] }).validateString(payload);
    expect(report.results.flatMap(({ messages }) => messages)).toEqual([]);
    expect(headers['content-security-policy']).not.toContain('unsafe');
    expect((await api.app.inject('/assets/pages.css')).headers['content-type']).toContain('text/css');
  });

  test('/docs/errors has a place for each code, with its status, its text and what to do', async () => {
    const { payload } = await api.app.inject('/docs/errors');
    for (const [code, { status, type }] of Object.entries(ERROR_CODES)) {
      const entry = payload.split(`<h2 id="${code}">`)[1]?.split('<h2')[0] ?? '';
      expect([code, entry.includes(`${status} · ${type}`)]).toEqual([code, true]);
      expect([code, entry.match(/<p>.+<\/p>/g)?.length]).toEqual([code, 2]);
    }
  });

  test('/ names portal and documentation', async () => {
    const { payload } = await api.app.inject('/');
    for (const path of ['/portal', '/docs', '/docs/explorer', '/docs/errors', '/api/external/openapi.json']) {
      expect(payload).toContain(`href="${path}"`);
    }
  });

  test('below /docs a file that is not there has the usual answer', async () => {
    const missing = await api.app.inject('/docs/explorer/static/nothing.js');
    expect([missing.statusCode, missing.json().error.code]).toEqual([404, 'route_not_found']);
  });
});
