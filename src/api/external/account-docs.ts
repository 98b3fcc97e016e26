import { documented } from '../openapi/documented.ts';

const IDENTITY = {
  userId: 1,
  wabaId: '900000000000101',
  businessName: 'Fixture Store',
  phoneNumbers: [
    {
      phoneNumberId: '800000000000111',
      displayPhoneNumber: '+1 202-555-0100',
      verifiedName: 'Fixture Store',
      qualityRating: 'GREEN',
    },
  ],
};

const identityDocs = (operationId: string, description: string) =>
  documented({
    operationId,
    summary: 'Whose the key is',
    description,
    tag: 'Account',
    answers: { 200: { description: 'The account of the key.', example: IDENTITY } },
  });

/** What the document says about the account of a key. */
export const accountDocs = {
  identity: identityDocs(
    'getAccountIdentity',
    'The tenant, the WABA, and the phone numbers that a request may name as `phoneNumberId`.',
  ),
  identityUnderPrefix: identityDocs(
    'getAccountIdentityUnderPrefix',
    'The same as `GET /me`, below the prefix of everything else.',
  ),
  ownKey: documented({
    operationId: 'getOwnKey',
    summary: 'The key of this request',
    description: 'What is known about the API key that the request carries; never the key itself.',
    tag: 'Account',
    answers: {
      200: {
        description: 'The key.',
        example: {
          id: '3',
          prefix: 'ck_1f0a2b3c',
          lastFour: '9d2e',
          name: 'shop server',
          wabaId: '900000000000101',
          scopes: ['read', 'send', 'manage_webhooks'],
          createdAt: '2026-11-01T08:00:00.000Z',
          expiresAt: null,
          lastUsedAt: '2026-11-21T09:30:00.000Z',
        },
      },
    },
  }),
  connectionTest: documented({
    operationId: 'testConnection',
    summary: 'Whether the API can be reached',
    description: 'Needs no API key and looks at none. To test a key, ask `GET /me`.',
    tag: 'Service',
    answers: { 200: { description: 'It can.', example: { status: 'ok' } } },
  }),
};
