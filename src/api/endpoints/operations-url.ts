import { Type } from 'typebox';
import {
  clearOperationsUrl,
  operationsUrlOf,
  rotateOperationsSecret,
  setOperationsUrl,
} from '../../alerts/operations-url.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { NoBody, NoQuery, nullable, text } from '../external/schema-kit.ts';
import { accountOf, apiActorOf, SCOPES, urlFor } from '../keys/api-key-auth.ts';
import { documented } from '../openapi/documented.ts';

const PATH = '/api/external/operations-url';
const EXAMPLE_URL = 'https://shop.example/operations';

const OperationsUrl = Type.Object({ url: nullable(Type.String(), EXAMPLE_URL) }, { title: 'OperationsUrl' });
const SavedOperationsUrl = Type.Object(
  {
    url: text(EXAMPLE_URL),
    secret: nullable(Type.String(), `whsec_${'Qm9yZWFsaXNBdXJv'.repeat(2)}`),
    secretRotationAdvised: Type.Boolean(),
  },
  { title: 'SavedOperationsUrl' },
);

/** GET and DELETE /api/external/operations-url: where alerts about endpoints go. */
export function operationsUrl(app: ExternalApp, { accounts }: ExternalContext): void {
  const get = {
    ...documented({
      operationId: 'getOperationsUrl',
      summary: 'Where alerts go',
      description:
        'Null when they go nowhere. A key without `manage_webhooks` gets the origin and a hash of the rest.',
      tag: 'Endpoint alerts',
      answers: { 200: { description: 'The URL.' } },
    }),
    querystring: NoQuery,
    response: { 200: OperationsUrl },
  };
  app.get(PATH, { schema: get, config: SCOPES.readWebhooks }, async (request) => {
    const url = await operationsUrlOf(accounts, accountOf(request).wabaId);
    return { url: url === null ? null : urlFor(request, url) };
  });
  const remove = {
    ...get,
    ...documented({
      operationId: 'deleteOperationsUrl',
      summary: 'Have alerts sent nowhere',
      description: 'They are still listed.',
      tag: 'Endpoint alerts',
      answers: { 200: { description: 'There is no URL any more.', example: { url: null } } },
    }),
  };
  app.delete(PATH, { schema: remove, config: SCOPES.manageWebhooks }, async (request) => {
    await clearOperationsUrl({ ...accounts, actor: apiActorOf(request) }, accountOf(request).wabaId);
    return { url: null };
  });
}

/** PUT /api/external/operations-url, POST …/rotate-secret: a new secret is in the answer, this once. */
export function changeOperationsUrl(app: ExternalApp, { accounts }: ExternalContext): void {
  const put = {
    ...documented({
      operationId: 'setOperationsUrl',
      summary: 'Have alerts sent to a URL',
      description:
        '`secret` is in the first answer only; later changes of the URL keep it and answer null. ' +
        '`secretRotationAdvised`: the URL leads to another server, and the one before still knows the secret.',
      tag: 'Endpoint alerts',
      errors: ['invalid_url', 'url_is_webhook_endpoint'],
      requests: { url: { url: EXAMPLE_URL } },
      answers: { 200: { description: 'The URL, and the secret that signs alerts.' } },
    }),
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
    ...documented({
      operationId: 'rotateOperationsUrlSecret',
      summary: 'Make a new secret for alerts',
      description: 'The old one ends at once; the new one is in this answer only.',
      tag: 'Endpoint alerts',
      errors: ['no_operations_url'],
      requests: { empty: {} },
      answers: { 200: { description: 'The new secret.' } },
    }),
    querystring: NoQuery,
    body: NoBody,
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
