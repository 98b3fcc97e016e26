import { type Static, Type } from 'typebox';
import {
  type ErasureView,
  eraseConversation,
  eraseCustomer,
  erasureOf,
  erasuresOf,
} from '../../erasures/erasures.ts';
import { exportCustomer } from '../../erasures/export-customer.ts';
import { readCustomerReference } from '../../messages/conversations/conversations.ts';
import { ApiError } from '../errors/api-error.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { PAGE_PARAMETERS, pageOf, positionOf, rowsToRead } from '../external/page.ts';
import {
  accountObjectId,
  dateTime,
  idParams,
  listOf,
  NoQuery,
  nullable,
  parameter,
  text,
} from '../external/schema-kit.ts';
import { accountOf, apiActorOf, SCOPES } from '../keys/api-key-auth.ts';
import { documented } from '../openapi/documented.ts';
import { sendExport } from './send-export.ts';

const EXAMPLE_ID = '7';
const COUNTS = { messages: 12, events: 31, deliveries: 31, files: 2, contacts: 1, conversations: 1 };

const Counts = Type.Record(Type.String(), Type.Integer(), { examples: [COUNTS] });

const SIGNED = {
  report: {
    ...{ version: 1, erasureId: EXAMPLE_ID, kind: 'customer', subjectId: '311' },
    ...{ wabaId: '900000000000101', tenantId: '3', requestedBy: 'API key 3', counts: COUNTS, refused: {} },
    requestedAt: '2026-11-21T09:30:00.000Z',
    startedAt: '2026-11-21T09:30:00.350Z',
    finishedAt: '2026-11-21T09:30:04.120Z',
  },
  signature: {
    ...{ algorithm: 'ed25519', keyId: 'k1', publicKey: 'O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik=' },
    value: 'jc3Nn2dZ0l5yQx8pYk1fB8c8o6mE5sV0qJ4x0rW8l3Zp7gTt1m2u9aXcV5bN6hD4eR2kS0wY7iO3jL1zQ8vBAA==',
  },
};

/** Which data is to be erased: of a customer, or of one conversation. */
const Customer = parameter(
  Type.String({ pattern: '^[^\\u0000]{1,256}$' }),
  'A phone number in any usual form, or a business-scoped user id.',
  '+1 202-555-0143',
);

const ErasureRequest = Type.Object(
  {
    customer: Type.Optional(Customer),
    conversationId: Type.Optional(
      parameter(Type.String({ pattern: '^[1-9]\\d{0,17}$' }), 'One conversation only.', '42'),
    ),
  },
  { title: 'ErasureRequest', additionalProperties: false },
);

const Erasure = Type.Object(
  {
    id: text(EXAMPLE_ID),
    kind: Type.Enum(['customer', 'conversation']),
    /** Our id of the customer or the conversation. */
    subjectId: text('311'),
    state: Type.Enum(['requested', 'running', 'done']),
    requestedBy: text('API key 3'),
    /** What it waits for at present. */
    waitsFor: nullable(Type.String()),
    counts: Counts,
    /** What other systems did not let go, such as versions in the object store. */
    refused: Type.Record(Type.String(), Type.Integer(), { examples: [{}] }),
    createdAt: dateTime(),
    startedAt: nullable(dateTime(), '2026-11-21T09:30:00.350Z'),
    finishedAt: nullable(dateTime(), '2026-11-21T09:30:04.120Z'),
    /** Once it is done. */
    report: nullable(
      Type.Object({
        report: Type.Object({}, { additionalProperties: true }),
        signature: Type.Object({
          algorithm: Type.String(),
          keyId: Type.String(),
          publicKey: Type.String(),
          value: Type.String(),
        }),
      }),
      SIGNED,
    ),
  },
  { title: 'Erasure' },
);

function erasureJson(erasure: ErasureView): Static<typeof Erasure> {
  const { erasureId: id, subjectId, state, requestedBy, waitsFor, counts, refused, report } = erasure;
  const kind = erasure.kind === 'conversation' ? 'conversation' : 'customer';
  return {
    ...{ id, kind, subjectId, state, requestedBy, waitsFor, counts: { ...counts }, refused: { ...refused } },
    createdAt: erasure.createdAt.toISOString(),
    startedAt: erasure.startedAt?.toISOString() ?? null,
    finishedAt: erasure.finishedAt?.toISOString() ?? null,
    report: report === null ? null : { report: { ...report.report }, signature: report.signature },
  };
}

const IN_PROGRESS = {
  state: 'requested',
  counts: {},
  refused: {},
  startedAt: null,
  finishedAt: null,
  report: null,
};

/** POST /api/external/erasures */
export function requestErasure(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'requestErasure',
      summary: 'Erase a customer or a conversation',
      description:
        'For good: messages, files, events and their deliveries, and what is known of the customer. Name either `customer` or `conversationId`. What the customer writes afterwards is accepted as from a new customer. While an erasure of the same subject is open, that one is returned.',
      tag: 'Erasures',
      errors: ['unknown_customer', 'unknown_conversation'],
      requests: {
        customer: { customer: '+1 202-555-0143' },
        conversation: { conversationId: '42' },
      },
      answers: {
        202: { description: 'It is erased.', example: IN_PROGRESS, headers: ['Location'] },
      },
    }),
    querystring: NoQuery,
    body: ErasureRequest,
    response: { 202: Erasure },
  };
  app.post('/api/external/erasures', { schema, config: SCOPES.erase }, async (request, reply) => {
    const { wabaId } = accountOf(request);
    const { customer, conversationId } = request.body;
    const tools = { ...accounts, actor: apiActorOf(request) };
    if ((customer === undefined) === (conversationId === undefined)) {
      const message = 'Name either customer or conversationId.';
      throw new ApiError('invalid_parameter', { param: 'customer', message });
    }
    const erasure =
      conversationId === undefined
        ? await eraseCustomer(tools, wabaId, readCustomerReference(customer ?? ''))
        : await eraseConversation(tools, wabaId, conversationId);
    reply.code(202).header('location', `/api/external/erasures/${erasure.erasureId}`);
    return erasureJson(erasure);
  });
}

/** GET /api/external/erasures: the newest first. */
export function listErasures(app: ExternalApp, { accounts, cursors }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'listErasures',
      summary: 'List erasures',
      description: 'The newest first.',
      tag: 'Erasures',
      answers: { 200: { description: 'A page of erasures.' } },
    }),
    querystring: Type.Object(PAGE_PARAMETERS, { additionalProperties: false }),
    response: { 200: listOf(Erasure) },
  };
  app.get('/api/external/erasures', { schema, config: SCOPES.erase }, async (request) => {
    const { wabaId } = accountOf(request);
    const { limit, cursor } = request.query;
    const scope = [wabaId, 'erasures'];
    const [beforeId = null] = positionOf(cursors, scope, cursor) ?? [];
    const found = await erasuresOf(accounts, wabaId, { beforeId, limit: rowsToRead(limit) });
    const { rows, ...page } = pageOf(found, limit, ({ erasureId }) => cursors.encode(scope, [erasureId]));
    return { data: rows.map(erasureJson), ...page };
  });
}

/** GET /api/external/erasures/:id */
export function getErasure(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'getErasure',
      summary: 'Get an erasure',
      description: 'How far it is; once it is done, with the signed report.',
      tag: 'Erasures',
      answers: { 200: { description: 'The erasure.', example: { state: 'done' } } },
    }),
    params: idParams('The id of the erasure.', EXAMPLE_ID),
    querystring: NoQuery,
    response: { 200: Erasure },
  };
  app.get('/api/external/erasures/:id', { schema, config: SCOPES.erase }, async (request) => {
    const { wabaId } = accountOf(request);
    return erasureJson(await erasureOf(accounts, wabaId, accountObjectId(request.params.id)));
  });
}

const ExportRequest = Type.Object(
  { customer: Customer },
  { title: 'ExportRequest', additionalProperties: false },
);

/** POST /api/external/exports: a body, since a phone number in a path would end in logs. */
export function exportOfCustomer(
  app: ExternalApp,
  { accounts, exportStore, exports }: ExternalContext,
): void {
  const zip = Type.String({ format: 'binary', examples: ['PK…'] });
  const schema = {
    ...documented({
      operationId: 'exportCustomer',
      summary: 'Export the data of a customer',
      description:
        'A zip archive: `customer.json`, `conversations.json`, `messages.ndjson` and `payments.ndjson` (one JSON object per line), and the files that messages carried. A WABA has one export at a time: another waits for ten seconds, and is then answered 503.',
      tag: 'Erasures',
      errors: ['unknown_customer'],
      requests: { customer: { customer: '+1 202-555-0143' } },
      answers: { 200: { description: 'The archive.', type: 'application/zip' } },
    }),
    querystring: NoQuery,
    body: ExportRequest,
    response: { 200: zip },
  };
  app.post('/api/external/exports', { schema, config: SCOPES.export }, async (request, reply) => {
    const account = accountOf(request);
    const tools = { ...accounts, objectStore: exportStore, actor: apiActorOf(request) };
    const customer = readCustomerReference(request.body.customer);
    // The schema describes the archive as text.
    return (await sendExport({ request, reply, exports }, account, () =>
      exportCustomer(tools, account.wabaId, customer),
    )) as never;
  });
}
