import { HtmlValidate } from 'html-validate';
import { describe, expect, test } from 'vitest';
import { ERROR_CODES } from '../../../src/api/errors/error-codes.ts';
import { apiOfFile } from './api-harness.ts';

const api = apiOfFile();
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
    for (const path of ['/portal', '/docs', '/docs/errors', '/api/external/openapi.json']) {
      expect(payload).toContain(`href="${path}"`);
    }
  });

  test('below /docs a file that is not there has the usual answer', async () => {
    const missing = await api.app.inject('/docs/assets/nothing.js');
    expect([missing.statusCode, missing.json().error.code]).toEqual([404, 'route_not_found']);
  });
});
