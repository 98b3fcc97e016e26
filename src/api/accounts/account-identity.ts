import { Type } from 'typebox';
import { findAccountIdentity } from '../../features/accounts/accounts.ts';
import { count, named, text } from '../external/schema-kit.ts';
import { restOperation } from '../operations/operation.ts';

const AccountIdentity = named('AccountIdentity', {
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
});

const PATHS = [
  {
    path: '/me',
    id: 'getAccountIdentity',
    description: 'The tenant, the WABA, and the phone numbers that a request may name as `phoneNumberId`.',
  },
  {
    path: '/api/external/me',
    id: 'getAccountIdentityUnderPrefix',
    description: 'The same as `GET /me`, below the prefix of all other operations.',
  },
] as const;

export const IDENTITY_OPERATIONS = PATHS.map((named) =>
  restOperation({
    ...named,
    method: 'GET',
    scope: 'any',
    summary: 'Get the account of the key',
    tag: 'Account',
    answers: { 200: { schema: AccountIdentity, description: 'The account of the key.' } },
    run: async ({ database, account: { wabaId, tenantId } }) => {
      const identity = await findAccountIdentity(database, wabaId);
      if (identity === null) throw new Error('the WABA of an API key is missing');
      const phoneNumbers = identity.phoneNumbers.map(({ qualityRating, ...number }) => ({
        ...number,
        ...(qualityRating !== null && { qualityRating }),
      }));
      return { userId: Number(tenantId), wabaId, businessName: identity.businessName, phoneNumbers };
    },
  }),
);
