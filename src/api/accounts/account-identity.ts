import { Type } from 'typebox';
import { findAccountIdentity } from '../../accounts/accounts.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { count, NoQuery, text } from '../external/schema-kit.ts';
import { accountOf, SCOPES } from '../keys/api-key-auth.ts';
import { documented } from '../openapi/documented.ts';

const AccountIdentity = Type.Object(
  {
    userId: count(1),
    wabaId: text('900000000000101'),
    businessName: text('Fixture Store'),
    phoneNumbers: Type.Array(
      Type.Object({
        phoneNumberId: text('800000000000111'),
        displayPhoneNumber: text('+1 202-555-0100'),
        verifiedName: text('Fixture Store'),
        qualityRating: Type.Optional(text('GREEN')),
      }),
    ),
  },
  { title: 'AccountIdentity' },
);

const PATHS = [
  {
    url: '/me',
    operationId: 'getAccountIdentity',
    description: 'The tenant, the WABA, and the phone numbers that a request may name as `phoneNumberId`.',
  },
  {
    url: '/api/external/me',
    operationId: 'getAccountIdentityUnderPrefix',
    description: 'The same as `GET /me`, below the prefix of everything else.',
  },
];

/** GET /me: whose the key is, and the numbers that its requests may name. */
export function accountIdentity(app: ExternalApp, { database }: ExternalContext): void {
  for (const { url, ...named } of PATHS) {
    const docs = documented({
      ...named,
      summary: 'Whose the key is',
      tag: 'Account',
      answers: { 200: { description: 'The account of the key.' } },
    });
    app.get(
      url,
      {
        schema: { ...docs, querystring: NoQuery, response: { 200: AccountIdentity } },
        // A sender needs the numbers.
        config: SCOPES.any,
      },
      async (request) => {
        const { wabaId, tenantId } = accountOf(request);
        const identity = await findAccountIdentity(database, wabaId);
        if (identity === null) throw new Error('the WABA of an API key is missing');
        const phoneNumbers = identity.phoneNumbers.map(({ qualityRating, ...number }) => ({
          ...number,
          ...(qualityRating !== null && { qualityRating }),
        }));
        return { userId: Number(tenantId), wabaId, businessName: identity.businessName, phoneNumbers };
      },
    );
  }
}
