import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll } from 'vitest';
import type { ApiDependencies } from '../../../../src/api/app.ts';
import { ACCESS_TOKEN } from '../../../../src/features/accounts/access-tokens.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { type FreshTenant, freshTenant, testSecretBox } from '../../../support/test-accounts.ts';
import { apiOfFile, testConfig } from '../api-harness.ts';
import { addFacadeKey } from './facade-key.ts';

/** One token reaches all WABAs, as that of a partner does: upstream alone would not keep them apart. */
export const TOKEN = 'EAAG/token+of=upstream';

/** A tenant that no other test knows, with a key of the facade and what upstream lists of its WABA. */
export type UpstreamAccount = FreshTenant & { key: string; template: string; flow: string };

type Call = {
  method: string;
  url: string;
  authorization: string | undefined;
  /** Of the bytes of an upload. */
  offset: unknown;
  body: string;
};
type Answer = { status?: number; json: unknown } | 'hang up';

const LIST = /^\/v26\.0\/(\d+\/(?:message_templates|flows))\?fields=id&/;

/** Upstream as far as the facade passes calls on: it says what it was asked. */
export async function startRecordingUpstream() {
  const calls: Call[] = [];
  /** The one object of each list. */
  const lists = new Map<string, string>();
  let answer: (call: Call) => Answer = () => ({ json: { success: true } });
  const server = createServer(async (request, response) => {
    let body = '';
    try {
      for await (const chunk of request) body += chunk;
    } catch {
      // The facade gave up in the middle of an upload.
      return;
    }
    const { method = '', url = '', headers } = request;
    const { authorization, file_offset: offset } = headers;
    const call = { method, url, authorization, offset, body };
    calls.push(call);
    const listed = lists.get(LIST.exec(url)?.[1] ?? '');
    const given = listed === undefined ? answer(call) : { json: { data: [{ id: listed }] } };
    if (given === 'hang up') return void request.socket.destroy();
    const { status = 200, json } = given;
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterAll(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    calls,
    reply: (next: typeof answer) => {
      answer = next;
    },
    overrides: async (): Promise<Partial<ApiDependencies>> => ({
      config: testConfig({
        HELIOGRAPH_UPSTREAM_GRAPH_URL: url,
        // The key of testSecretBox.
        HELIOGRAPH_ENCRYPTION_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
      }),
    }),
    newAccount: async (database: Database): Promise<UpstreamAccount> => {
      const tenant = await freshTenant(database);
      const { wabaId } = tenant;
      const sealed = testSecretBox.seal(TOKEN, ACCESS_TOKEN.place(wabaId));
      const set = 'update wabas set access_token_sealed = :sealed where waba_id = :wabaId';
      await execute(database, set, { sealed, wabaId });
      const objects = { template: `77${wabaId}`, flow: `66${wabaId}` };
      lists.set(`${wabaId}/message_templates`, objects.template).set(`${wabaId}/flows`, objects.flow);
      return { ...tenant, ...objects, key: await addFacadeKey(database, wabaId) };
    },
  };
}

/** As `apiOfFile`, in front of an upstream that is filled before the first test too. */
export function apiOnRecordingUpstream() {
  const upstream = {} as Awaited<ReturnType<typeof startRecordingUpstream>>;
  const api = apiOfFile(async () => {
    Object.assign(upstream, await startRecordingUpstream());
    return await upstream.overrides();
  });
  return { api, upstream };
}
