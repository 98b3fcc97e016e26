import { Type } from 'typebox';
import { externalTenant } from '../../features/accounts/external-tenants.ts';
import { askForNumbersAgain } from '../../features/accounts/followed-numbers.ts';
import { addWaba } from '../../features/accounts/wabas.ts';
import { removeWaba } from '../../ops/erasures/account-removal.ts';
import { checkWaba } from '../../ops/health/waba-check.ts';
import { RequestError } from '../../platform/request-input.ts';
import { WabaCheck, wabaCheckJson } from '../accounts/waba-check.ts';
import { count, named, namedClosed, text } from '../external/schema-kit.ts';
import { inTenant, requireWaba } from './in-tenant.ts';
import { platformOperation } from './platform-operation.ts';
import { OF_WABA, PlatformWaba, WABA_PATH } from './platform-schemas.ts';

const GivenNumber = Type.Object(
  {
    phoneNumberId: Type.String({ pattern: '^[0-9]{1,64}$' }),
    displayPhoneNumber: Type.Optional(Type.String({ maxLength: 200 })),
    verifiedName: Type.Optional(Type.String({ maxLength: 200 })),
  },
  { additionalProperties: false },
);

const putWaba = platformOperation({
  id: 'putWaba',
  method: 'PUT',
  path: WABA_PATH,
  scope: 'wabas',
  summary: 'Add or update a WABA',
  description:
    'Adds the WABA to the tenant (201), or brings it up to date (200); what is left out stays. With an access token, or with `lookUpNumbers`, ' +
    'the numbers are looked up at the upstream platform after the answer: GET the tenant to see them. The access token is never shown.',
  tag: 'WABAs',
  errors: ['unknown_tenant', 'waba_taken', 'phone_number_taken'],
  requests: {
    'with its token': { accessToken: 'EAAG…' },
    'with its numbers': {
      phoneNumbers: [{ phoneNumberId: '800000000000111', displayPhoneNumber: '12025550100' }],
    },
  },
  params: OF_WABA,
  body: namedClosed('WabaInput', {
    accessToken: Type.Optional(
      Type.String({
        format: 'password',
        minLength: 1,
        maxLength: 4_096,
        description: 'Of a system user. It is stored encrypted.',
      }),
    ),
    phoneNumbers: Type.Optional(Type.Array(GivenNumber, { maxItems: 100 })),
    lookUpNumbers: Type.Optional(Type.Boolean()),
  }),
  answers: {
    200: { schema: PlatformWaba, description: 'The tenant had the WABA.' },
    201: { schema: PlatformWaba, description: 'The tenant has the WABA now.' },
  },
  run: async (call, { externalId, wabaId, accessToken = null, phoneNumbers = [], lookUpNumbers = false }) =>
    await inTenant(call, { externalId }, async (tools, { userId, wabas }) => {
      const made = !wabas.some((waba) => waba.wabaId === wabaId);
      const waba = await addWaba(tools, userId, { wabaId, phoneNumbers, accessToken }).catch(hideOwner);
      if (lookUpNumbers) await askForNumbersAgain(tools.database, [wabaId], { atOnce: true });
      return { made, waba };
    }),
  status: ({ made }) => (made ? 201 : 200),
  json: ({ waba }) => waba,
  example: 'put-waba acme 900000000000101 --access-token-stdin < token.txt',
});

/** The sentence for operators says whose the number is. */
function hideOwner(error: unknown): never {
  const isTaken = error instanceof RequestError && error.code === 'phone_number_taken';
  throw isTaken
    ? new RequestError(error.code, 'One of the phone numbers belongs to another WABA.', 'phoneNumbers')
    : error;
}

const removeWabaOperation = platformOperation({
  id: 'removeWaba',
  method: 'DELETE',
  path: WABA_PATH,
  scope: 'remove',
  summary: 'Remove a WABA',
  description:
    'Its keys are revoked, its token is deleted, and its endpoints with their pending deliveries. Its history is kept where there is one, and only this tenant can have it again. A second time returns 404.',
  tag: 'WABAs',
  errors: ['unknown_tenant', 'unknown_waba'],
  params: OF_WABA,
  answers: {
    200: {
      schema: named('RemovedWaba', {
        wabaId: text('900000000000101'),
        endpoints: count(2),
        dropped: count(0),
        kept: Type.Boolean({ examples: [true] }),
      }),
      description: 'The WABA is removed; `dropped` counts the deliveries that are not sent any more.',
    },
  },
  run: async ({ tools }, { externalId, wabaId }) => {
    requireWaba(await externalTenant(tools.database, externalId), wabaId);
    return await removeWaba(tools, wabaId);
  },
  json: (removed) => removed,
  example: 'remove-waba acme 900000000000101',
});

const checkTenantWaba = platformOperation({
  id: 'checkTenantWaba',
  method: 'GET',
  path: `${WABA_PATH}/check`,
  scope: 'read',
  summary: 'Check a WABA',
  description:
    'Follows a webhook from the upstream platform to the endpoints, as `GET /api/external/waba-check` does. Asks upstream with each request.',
  tag: 'WABAs',
  errors: ['unknown_tenant', 'unknown_waba'],
  params: OF_WABA,
  answers: { 200: { schema: WabaCheck, description: 'The findings of each check.' } },
  run: async ({ tools, upstream, publicUrl }, { externalId, wabaId }) => {
    const { database } = tools;
    requireWaba(await externalTenant(database, externalId), wabaId);
    return wabaCheckJson(wabaId, await checkWaba({ accounts: tools, database, upstream, publicUrl }, wabaId));
  },
  json: (checks) => checks,
  example: 'check-tenant-waba acme 900000000000101',
});

export const WABA_OPERATIONS = [putWaba, removeWabaOperation, checkTenantWaba];
