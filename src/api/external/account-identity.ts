import { Type } from 'typebox';
import { findAccountIdentity } from '../../database/account-identity.ts';
import { accountOf } from '../plugins/api-key-auth.ts';
import { SCOPES } from '../plugins/key-scopes.ts';
import { accountDocs } from './account-docs.ts';
import type { ExternalApp, ExternalContext } from './external-app.ts';
import { NoQuery } from './no-query.ts';

const AccountIdentity = Type.Object(
  {
    userId: Type.Integer(),
    wabaId: Type.String(),
    businessName: Type.String(),
    phoneNumbers: Type.Array(
      Type.Object({
        phoneNumberId: Type.String(),
        displayPhoneNumber: Type.String(),
        verifiedName: Type.String(),
        qualityRating: Type.Optional(Type.String()),
      }),
    ),
  },
  { title: 'AccountIdentity' },
);

/** GET /me: whose the key is, and the numbers that its requests may name. */
export function accountIdentity(app: ExternalApp, { database }: ExternalContext): void {
  for (const [url, docs] of [
    ['/me', accountDocs.identity],
    ['/api/external/me', accountDocs.identityUnderPrefix],
  ] as const) {
    app.get(
      url,
      {
        schema: { ...docs, querystring: NoQuery, response: { 200: AccountIdentity } },
        // Whoever sends needs the numbers.
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
