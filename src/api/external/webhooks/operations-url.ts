import { Type } from 'typebox';
import {
  clearOperationsUrl,
  operationsUrlOf,
  rotateOperationsSecret,
  setOperationsUrl,
} from '../../../accounts/operations-url.ts';
import { accountOf, apiActorOf } from '../../plugins/api-key-auth.ts';
import { SCOPES } from '../../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from '../external-app.ts';
import { NoQuery } from '../no-query.ts';
import { nullable } from '../nullable.ts';
import { alertDocs } from './alert-docs.ts';

const PATH = '/api/external/operations-url';

const OperationsUrl = Type.Object({ url: nullable(Type.String()) }, { title: 'OperationsUrl' });
const SavedOperationsUrl = Type.Object(
  { url: Type.String(), secret: nullable(Type.String()), secretRotationAdvised: Type.Boolean() },
  { title: 'SavedOperationsUrl' },
);

/** GET and DELETE /api/external/operations-url: where alerts about endpoints go. */
export function operationsUrl(app: ExternalApp, { accounts }: ExternalContext): void {
  const get = { ...alertDocs.getUrl, querystring: NoQuery, response: { 200: OperationsUrl } };
  app.get(PATH, { schema: get, config: SCOPES.readWebhooks }, async (request) => ({
    url: await operationsUrlOf(accounts, accountOf(request).wabaId),
  }));
  const remove = { ...get, ...alertDocs.deleteUrl };
  app.delete(PATH, { schema: remove, config: SCOPES.manageWebhooks }, async (request) => {
    await clearOperationsUrl({ ...accounts, actor: apiActorOf(request) }, accountOf(request).wabaId);
    return { url: null };
  });
}

/** PUT /api/external/operations-url, POST …/rotate-secret: a new secret is in the answer, this once. */
export function changeOperationsUrl(app: ExternalApp, { accounts }: ExternalContext): void {
  const put = {
    ...alertDocs.setUrl,
    querystring: NoQuery,
    body: Type.Object({ url: Type.String() }, { additionalProperties: false }),
    response: { 200: SavedOperationsUrl },
  };
  app.put(PATH, { schema: put, config: SCOPES.manageWebhooks }, async (request) => {
    const { url, secret, secretRotationAdvised } = await setOperationsUrl(
      { ...accounts, actor: apiActorOf(request) },
      accountOf(request).wabaId,
      request.body.url,
    );
    return { url, secret, secretRotationAdvised };
  });
  const rotate = {
    ...alertDocs.rotateSecret,
    querystring: NoQuery,
    body: Type.Object({}, { additionalProperties: false }),
    response: { 200: SavedOperationsUrl },
  };
  const options = { schema: rotate, config: SCOPES.manageWebhooks };
  app.post(`${PATH}/rotate-secret`, options, async (request) => {
    const { url, secret, secretRotationAdvised } = await rotateOperationsSecret(
      { ...accounts, actor: apiActorOf(request) },
      accountOf(request).wabaId,
    );
    return { url, secret, secretRotationAdvised };
  });
}
