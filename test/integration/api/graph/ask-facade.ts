import { expect } from 'vitest';
import type { TestApi } from '../api-harness.ts';
import { TOKEN } from './recording-upstream.ts';

export type Asked = { method?: string; body?: unknown; bearer?: string | null };

/** Asks the facade as a client of the Cloud API does; no answer ever holds the token of the WABA. */
export async function askFacade(
  { app }: TestApi,
  path: string,
  { method = 'GET', body, bearer = null }: Asked,
) {
  const headers = {
    ...(bearer !== null && { authorization: `Bearer ${bearer}` }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
  };
  const payload = body === undefined ? {} : { payload: JSON.stringify(body) };
  const answer = await app.inject({ method: method as 'GET', url: `/graph${path}`, headers, ...payload });
  expect(answer.body).not.toContain(TOKEN);
  return { status: answer.statusCode, json: answer.json(), text: answer.body };
}
