import type { Command } from 'commander';
import { Type } from 'typebox';
import {
  clearOperationsUrl,
  endpointAlertsOf,
  operationsUrlOf,
  rotateOperationsSecret,
  type SavedOperationsUrl,
  setOperationsUrl,
} from '../../ops/alerts/operations-url.ts';
import { type AdminOutcome, alignedFields, alignedTable } from '../../platform/cli/admin-action.ts';
import { closed, named, nullable, text } from '../external/schema-kit.ts';
import { urlFor } from '../keys/api-key-auth.ts';
import { operation } from '../operations/operation.ts';
import { commandGroup, operationCommand } from '../operations/operation-command.ts';

const PATH = '/api/external/operations-url';
const EXAMPLE_URL = 'https://shop.example/operations';

const OperationsUrl = named('OperationsUrl', { url: nullable(Type.String(), EXAMPLE_URL) });
const SavedUrl = named('SavedOperationsUrl', {
  url: text(EXAMPLE_URL),
  secret: nullable(Type.String(), `whsec_${'Qm9yZWFsaXNBdXJv'.repeat(2)}`),
  secretRotationAdvised: Type.Boolean(),
});

const get = operation({
  id: 'getOperationsUrl',
  method: 'GET',
  path: PATH,
  scope: 'readWebhooks',
  summary: 'Get the URL for alerts',
  description:
    'Null when alerts are not sent. A key without `manage_webhooks` gets the origin and a hash of the rest.',
  tag: 'Endpoint alerts',
  answers: { 200: { description: 'The URL.', schema: OperationsUrl } },
  run: async ({ tools, wabaId }) => ({ url: await operationsUrlOf(tools, wabaId) }),
  json: ({ url }, { request }) => ({ url: url === null ? null : urlFor(request, url) }),
  command: {
    name: 'operations-url show',
    help: 'show the URL and the newest alerts',
    example: 'operations-url show --waba 900000000000101',
    waba: 'the WABA',
    show: async ({ url }, { call: { tools, wabaId } }) => {
      const alerts = await endpointAlertsOf(tools, wabaId);
      const table = alignedTable(
        ['ALERT', 'ENDPOINT', 'STATE', 'ATTEMPTS', 'LAST ERROR', 'AT'],
        alerts.map((one) => [
          ...[one.alert, one.endpointId, one.state, one.attempts, one.lastError, one.createdAt],
        ]),
        'There were no alerts yet.',
      );
      return { json: { wabaId, url, alerts }, text: [alignedFields([['URL', url]]), '', table].join('\n') };
    },
  },
});

const clear = operation({
  id: 'deleteOperationsUrl',
  method: 'DELETE',
  path: PATH,
  scope: 'manageWebhooks',
  summary: 'Remove the URL for alerts',
  description: 'Alerts are not sent; they are still listed.',
  tag: 'Endpoint alerts',
  answers: {
    200: { description: 'The URL was removed.', schema: OperationsUrl, example: { url: null } },
  },
  run: ({ tools, wabaId }) => clearOperationsUrl(tools, wabaId),
  json: () => ({ url: null }),
  command: {
    name: 'operations-url clear',
    help: 'send no more alerts; the secret is forgotten',
    example: 'operations-url clear --waba 900000000000101',
    waba: 'the WABA',
    show: (_, { call: { wabaId } }) => ({
      json: { wabaId, url: null },
      text: `WABA ${wabaId} has no operations URL any more.`,
    }),
  },
});

const set = operation({
  id: 'setOperationsUrl',
  method: 'PUT',
  path: PATH,
  scope: 'manageWebhooks',
  summary: 'Set the URL for alerts',
  description:
    '`secret` is in the first answer only; later changes of the URL keep it and answer null. ' +
    '`secretRotationAdvised`: the URL leads to another server, and the previous server still knows the secret.',
  tag: 'Endpoint alerts',
  errors: ['invalid_url', 'url_is_webhook_endpoint'],
  requests: { url: { url: EXAMPLE_URL } },
  body: closed({ url: Type.String() }),
  answers: { 200: { description: 'The URL, and the secret that signs alerts.', schema: SavedUrl } },
  run: ({ tools, wabaId }, { url }) => setOperationsUrl(tools, wabaId, url),
  json: savedJson,
  command: {
    name: 'operations-url set',
    help: 'send alerts to a URL; the first time, prints the secret that verifies their signatures',
    example: 'operations-url set --waba 900000000000101 --url https://shop.example/alerts --json',
    waba: 'the WABA',
    options: {
      url: {
        flags: '--url <url>',
        help: 'https:// unless the settings allow http; not the URL of a webhook endpoint',
        isRequired: true,
      },
    },
    show: describeSaved,
  },
});

const rotate = operation({
  id: 'rotateOperationsUrlSecret',
  method: 'POST',
  path: `${PATH}/rotate-secret`,
  scope: 'manageWebhooks',
  summary: 'Make a new secret for alerts',
  description: 'The old secret ends at once; the new secret is in this answer only.',
  tag: 'Endpoint alerts',
  errors: ['no_operations_url'],
  answers: { 200: { description: 'The new secret.', schema: SavedUrl } },
  run: ({ tools, wabaId }) => rotateOperationsSecret(tools, wabaId),
  json: savedJson,
  command: {
    name: 'operations-url rotate-secret',
    help: 'make a new secret; from the next attempt on, it alone signs',
    example: 'operations-url rotate-secret --waba 900000000000101 --json',
    waba: 'the WABA',
    show: describeSaved,
  },
});

function savedJson({ url, secret, secretRotationAdvised }: SavedOperationsUrl) {
  return { url, secret, secretRotationAdvised };
}

function describeSaved(saved: SavedOperationsUrl): AdminOutcome {
  const note = `the previous server still knows the secret: "operations-url rotate-secret --waba ${saved.wabaId}" makes a new one.`;
  return {
    json: saved,
    notes: saved.secretRotationAdvised ? [note] : [],
    text: alignedFields([
      ['WABA', saved.wabaId],
      ['URL', saved.url],
      ['secret', saved.secret ?? 'as before'],
    ]),
  };
}

export const OPERATIONS_URL_OPERATIONS = [get, clear, set, rotate];

export function operationsUrlCommand(): Command {
  const description = 'where a tenant receives alerts about its webhook endpoints';
  return commandGroup('operations-url', description, [set, get, rotate, clear].map(operationCommand));
}
