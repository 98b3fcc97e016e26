import { addKey, type TestApi, WABA } from './api-harness.ts';

/** Calls the External API with a key of the WABA. */
export async function externalClient(api: TestApi, wabaId = WABA) {
  const { authorization } = await addKey(api.database, wabaId);
  return (method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', url: string, payload?: object) =>
    api.app.inject({ method, url, headers: { authorization }, ...(payload && { payload }) });
}
