import { Type } from 'typebox';
import { findWaba, listPhoneNumbers } from '../../database/accounts.ts';
import { accountOf } from '../plugins/api-key-auth.ts';
import { SCOPES } from '../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from './external-app.ts';
import { NoQuery } from './no-query.ts';

const AccountIdentity = Type.Object({
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
});

/** GET /me: whose the key is, and the numbers that its requests may name. */
export function accountIdentity(app: ExternalApp, { database }: ExternalContext): void {
  for (const [url, operationId] of [
    ['/me', 'getAccountIdentity'],
    ['/api/external/me', 'getAccountIdentityUnderPrefix'],
  ] as const) {
    app.get(
      url,
      {
        schema: { operationId, querystring: NoQuery, response: { 200: AccountIdentity } },
        // Whoever sends needs the numbers.
        config: SCOPES.any,
      },
      async (request) => {
        const { wabaId, tenantId } = accountOf(request);
        const [waba, numbers] = await Promise.all([
          findWaba(database, wabaId),
          listPhoneNumbers(database, wabaId),
        ]);
        if (waba === null) throw new Error('the WABA of an API key is missing');
        const phoneNumbers = numbers.map(({ qualityRating, ...number }) => ({
          ...number,
          ...(qualityRating !== null && { qualityRating }),
        }));
        return { userId: Number(tenantId), wabaId, businessName: waba.businessName, phoneNumbers };
      },
    );
  }
}
