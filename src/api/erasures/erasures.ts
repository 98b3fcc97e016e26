import { type Static, Type } from 'typebox';
import { readCustomerReference } from '../../features/customers/customer-reference.ts';
import {
  type ErasureView,
  eraseConversation,
  eraseCustomer,
  erasureOf,
  erasuresOf,
} from '../../ops/erasures/erasures.ts';
import { exportCustomer } from '../../ops/erasures/export-customer.ts';
import { invalidParameter } from '../errors/api-error.ts';
import { PageQuery, readPage } from '../external/page.ts';
import {
  accountObjectPath,
  Customer,
  dateTime,
  listOf,
  named,
  namedClosed,
  nullable,
  optionalParameter,
  text,
} from '../external/schema-kit.ts';
import { restOperation } from '../operations/operation.ts';
import { sendExport } from './send-export.ts';

const EXAMPLE_ID = '7';
const COUNTS = { messages: 12, events: 31, deliveries: 31, files: 2, contacts: 1, conversations: 1 };

const Counts = Type.Record(Type.String(), Type.Integer(), { examples: [COUNTS] });

const SIGNED = {
  report: {
    version: 1,
    erasureId: EXAMPLE_ID,
    kind: 'customer',
    subjectId: '311',
    wabaId: '900000000000101',
    tenantId: '3',
    requestedBy: 'API key 3',
    counts: COUNTS,
    refused: {},
    requestedAt: '2026-11-21T09:30:00.000Z',
    startedAt: '2026-11-21T09:30:00.350Z',
    finishedAt: '2026-11-21T09:30:04.120Z',
  },
  signature: {
    algorithm: 'ed25519',
    keyId: 'k1',
    publicKey: 'O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik=',
    value: 'jc3Nn2dZ0l5yQx8pYk1fB8c8o6mE5sV0qJ4x0rW8l3Zp7gTt1m2u9aXcV5bN6hD4eR2kS0wY7iO3jL1zQ8vBAA==',
  },
};

const ErasureRequest = namedClosed('ErasureRequest', {
  customer: Type.Optional(Customer),
  conversationId: optionalParameter(
    Type.String({ pattern: '^[1-9]\\d{0,17}$' }),
    'One conversation only.',
    '42',
  ),
});

const Erasure = named('Erasure', {
  id: text(EXAMPLE_ID),
  kind: Type.Enum(['customer', 'conversation']),
  subjectId: text('311'),
  state: Type.Enum(['requested', 'running', 'done']),
  requestedBy: text('API key 3'),
  waitsFor: nullable(Type.String()),
  counts: Counts,
  /** What other systems did not let go, such as versions in the object store. */
  refused: Type.Record(Type.String(), Type.Integer(), { examples: [{}] }),
  createdAt: dateTime(),
  startedAt: nullable(dateTime(), '2026-11-21T09:30:00.350Z'),
  finishedAt: nullable(dateTime(), '2026-11-21T09:30:04.120Z'),
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
});

function erasureJson(erasure: ErasureView): Static<typeof Erasure> {
  const { erasureId: id, wabaId, tenantId, kind, ...shown } = erasure;
  return { id, kind: kind === 'conversation' ? kind : 'customer', ...shown };
}

const IN_PROGRESS = {
  state: 'requested',
  counts: {},
  refused: {},
  startedAt: null,
  finishedAt: null,
  report: null,
};

const requestErasure = restOperation({
  id: 'requestErasure',
  method: 'POST',
  path: '/api/external/erasures',
  scope: 'erase',
  summary: 'Erase a customer or a conversation',
  description:
    'Permanently: messages, files, events and their deliveries, and the data of the customer. Name either `customer` or `conversationId`. Messages that the customer writes afterwards are accepted as from a new customer. While an erasure of the same subject is open, that one is returned.',
  tag: 'Erasures',
  errors: ['unknown_customer', 'unknown_conversation'],
  requests: {
    customer: { customer: '+1 202-555-0143' },
    conversation: { conversationId: '42' },
  },
  body: ErasureRequest,
  answers: {
    202: { schema: Erasure, description: 'It is erased.', example: IN_PROGRESS, headers: ['Location'] },
  },
  run: async ({ tools, wabaId, reply }, { customer, conversationId }) => {
    if ((customer === undefined) === (conversationId === undefined)) {
      throw invalidParameter('customer', 'Name either customer or conversationId.');
    }
    const erasure =
      conversationId === undefined
        ? await eraseCustomer(tools, wabaId, readCustomerReference(customer ?? ''))
        : await eraseConversation(tools, wabaId, conversationId);
    reply.code(202).header('location', `/api/external/erasures/${erasure.erasureId}`);
    return erasureJson(erasure);
  },
});

const list = restOperation({
  id: 'listErasures',
  method: 'GET',
  path: '/api/external/erasures',
  scope: 'erase',
  summary: 'List erasures',
  description: 'The newest first.',
  tag: 'Erasures',
  query: PageQuery,
  answers: { 200: { schema: listOf(Erasure), description: 'A page of erasures.' } },
  run: async (call, input) => {
    const { rows, ...page } = await readPage(call, input, {
      name: 'erasures',
      find: ([beforeId = null], limit) => erasuresOf(call.tools, call.wabaId, { beforeId, ...limit }),
      position: ({ erasureId }) => [erasureId],
    });
    return { data: rows.map(erasureJson), ...page };
  },
});

const get = restOperation({
  id: 'getErasure',
  method: 'GET',
  path: '/api/external/erasures/:id',
  scope: 'erase',
  summary: 'Get an erasure',
  description: 'Its progress; once it is done, with the signed report.',
  tag: 'Erasures',
  ...accountObjectPath('The id of the erasure.', EXAMPLE_ID),
  answers: { 200: { schema: Erasure, description: 'The erasure.', example: { state: 'done' } } },
  run: async ({ tools, wabaId }, { id }) => erasureJson(await erasureOf(tools, wabaId, id)),
});

const ExportRequest = namedClosed('ExportRequest', { customer: Customer });

const Archive = Type.String({ format: 'binary', examples: ['PK…'] });

/** A body, since a phone number in a path would end in logs. */
const exportData = restOperation({
  id: 'exportCustomer',
  method: 'POST',
  path: '/api/external/exports',
  scope: 'export',
  summary: 'Export the data of a customer',
  description:
    'A zip archive: `customer.json`, `conversations.json`, `messages.ndjson` and `payments.ndjson` (one JSON object per line), and the files that messages carried. A WABA has one export at a time: another waits for ten seconds, and then gets a 503.',
  tag: 'Erasures',
  errors: ['unknown_customer'],
  requests: { customer: { customer: '+1 202-555-0143' } },
  body: ExportRequest,
  answers: { 200: { schema: Archive, description: 'The archive.', type: 'application/zip' } },
  run: async ({ tools, exportStore, exports, account, request, reply }, input) => {
    const customer = readCustomerReference(input.customer);
    // The schema describes the archive as text.
    return (await sendExport({ request, reply, exports }, account, () =>
      exportCustomer({ ...tools, objectStore: exportStore }, account.wabaId, customer),
    )) as never;
  },
});

export const ERASURE_OPERATIONS = [requestErasure, list, get, exportData];
