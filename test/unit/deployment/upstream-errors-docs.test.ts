import { expect, test } from 'vitest';
import { upstreamErrorsPage } from '../../../scripts/upstream-errors-page.ts';
import {
  sendErrorAdvice,
  sendErrorClass,
  UPSTREAM_ERRORS,
} from '../../../src/features/messages/send/upstream-errors.ts';
import { repositoryFile } from './compose-file.ts';

test('docs/tenants/upstream-errors.md lists what the code knows of each error code', () => {
  expect(repositoryFile('docs/tenants/upstream-errors.md')).toBe(upstreamErrorsPage());
  for (const { code, advice, class: errorClass } of UPSTREAM_ERRORS)
    expect([sendErrorAdvice(code), sendErrorClass(code)]).toEqual([advice, errorClass]);
  expect(sendErrorAdvice(299)).toBe(sendErrorAdvice(10));
  expect([sendErrorAdvice(300), sendErrorClass(null)]).toEqual([null, null]);
});

test('each code stands there once, in order', () => {
  const codes = UPSTREAM_ERRORS.map(({ code }) => code);
  expect(codes).toEqual([...new Set(codes)].sort((a, b) => a - b));
});
