import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll } from 'vitest';
import { accessTokenPlace } from '../../../../src/accounts/sealed-columns.ts';
import type { ApiDependencies } from '../../../../src/api/app.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { testSecretBox } from '../../../support/test-accounts.ts';
import { OTHER_WABA, testConfig, WABA } from '../api-harness.ts';

/** One token reaches both WABAs, as that of a partner does: upstream alone would not keep them apart. */
export const TOKEN = 'EAAG/token+of=upstream';

/** What upstream lists of each WABA. */
export const UPSTREAM_OBJECTS = {
  [WABA]: { template: '77001', flow: '66001' },
  [OTHER_WABA]: { template: '77002', flow: '66002' },
};

type Call = { method: string; url: string; authorization: string | undefined; body: string };

const LIST = /^\/v26\.0\/(\d+)\/(message_templates|flows)\?fields=id&/;

/** Upstream as far as the facade passes calls on: it says what it was asked. */
export async function startRecordingUpstream() {
  const calls: Call[] = [];
  let answer: (call: Call) => { status?: number; json: unknown } = () => ({ json: { success: true } });
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { method = '', url = '', headers } = request;
    const call = { method, url, authorization: headers.authorization, body };
    calls.push(call);
    const { status = 200, json } = listed(url) ?? answer(call);
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterAll(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ url, calls },
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
    addTokens: async (database: Database): Promise<void> => {
      for (const wabaId of [WABA, OTHER_WABA]) {
        const sealed = testSecretBox.seal(TOKEN, accessTokenPlace(wabaId));
        const set = 'update wabas set access_token_sealed = ? where waba_id = ?';
        await execute(database, set, [sealed, wabaId]);
      }
    },
  };
}

function listed(url: string): { status?: number; json: unknown } | null {
  const [, wabaId, edge] = LIST.exec(url) ?? [];
  if (wabaId !== WABA && wabaId !== OTHER_WABA) return null;
  const { template, flow } = UPSTREAM_OBJECTS[wabaId];
  return { json: { data: [{ id: edge === 'flows' ? flow : template }] } };
}
