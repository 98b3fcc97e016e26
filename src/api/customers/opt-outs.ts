import { type Static, Type } from 'typebox';
import { readCustomerReference } from '../../features/customers/customer-reference.ts';
import {
  listOptOuts,
  OPT_OUT_SCOPES,
  OPT_OUT_SOURCES,
  type OptOutRow,
} from '../../features/customers/opt-outs.ts';
import { endCustomerOptOuts, noteOptOut } from '../../features/customers/tenant-opt-outs.ts';
import { PAGE_PARAMETERS, readPage } from '../external/page.ts';
import {
  Customer,
  listOf,
  named,
  namedClosed,
  nullable,
  optionalParameter,
  parameter,
  text,
  upstreamText,
} from '../external/schema-kit.ts';
import { restOperation } from '../operations/operation.ts';
import { OptOutMark } from './opt-out-mark.ts';

const NUMBER = optionalParameter(
  upstreamText(128),
  'At this number only; without it at all.',
  '800000000000111',
);

const OptOut = named('OptOut', {
  id: text('12'),
  customer: Type.Object({
    waId: nullable(Type.String(), '12025550143'),
    userId: nullable(Type.String()),
    name: nullable(Type.String(), 'Asha Tester'),
    username: nullable(Type.String()),
  }),
  phoneNumberId: nullable(Type.String(), '800000000000111'),
  ...OptOutMark.properties,
  reason: nullable(Type.String(), 'asked by phone'),
});

function optOutJson({ waId, userId, name, username, ...row }: OptOutRow): Static<typeof OptOut> {
  const { id, phoneNumberId, scope, source, since, reason } = row;
  return { id, customer: { waId, userId, name, username }, phoneNumberId, scope, source, since, reason };
}

const add = restOperation({
  id: 'addOptOut',
  method: 'POST',
  path: '/api/external/opt-outs',
  scope: 'send',
  summary: 'Note that a customer wants no messages',
  description:
    'With the scope `marketing` their marketing templates are refused with 422 `recipient_opted_out`; with `all` every message outside the customer service window too. A customer has one of the tenant’s own per number, and one for all numbers: a repeated request changes its scope and reason. The customer need not be known.',
  tag: 'Opt-outs',
  errors: ['unknown_phone_number'],
  requests: { customer: { customer: '+1 202-555-0143', scope: 'marketing', reason: 'asked by phone' } },
  body: namedClosed('NewOptOut', {
    customer: Customer,
    phoneNumberId: NUMBER,
    scope: Type.Enum([...OPT_OUT_SCOPES]),
    reason: optionalParameter(upstreamText(500), 'For people; erased with the customer.', 'asked by phone'),
  }),
  answers: { 200: { schema: OptOut, description: 'The opt-out.', example: { source: 'api' } } },
  run: async ({ tools, wabaId }, { customer, ...given }) =>
    optOutJson(await noteOptOut(tools, wabaId, readCustomerReference(customer), { ...given, source: 'api' })),
});

const search = restOperation({
  id: 'searchOptOuts',
  method: 'POST',
  path: '/api/external/opt-outs/search',
  scope: 'read',
  summary: 'Search opt-outs',
  description:
    'Customers who want no messages of some kind, the newest opt-out first. One that was kept for an erased customer is found by a phone number or user id of theirs alone, and names nobody.',
  tag: 'Opt-outs',
  requests: { customer: { customer: '+1 202-555-0143' }, all: {} },
  body: namedClosed('OptOutSearch', {
    ...PAGE_PARAMETERS,
    customer: Type.Optional(Customer),
    phoneNumberId: optionalParameter(
      upstreamText(128),
      'Only those that hold at this number.',
      '800000000000111',
    ),
    source: Type.Optional(Type.Enum([...OPT_OUT_SOURCES])),
  }),
  answers: { 200: { schema: listOf(OptOut), description: 'A page of opt-outs.' } },
  run: async (call, { customer, phoneNumberId = null, source = null, ...page }) => {
    const reference = customer === undefined ? null : readCustomerReference(customer);
    const filter = { customer: reference, phoneNumberId, source };
    const { rows, ...rest } = await readPage(call, page, {
      name: `opt-outs ${JSON.stringify(filter)}`,
      find: ([beforeId = null], { limit = 100 }) =>
        listOptOuts(call.tools.database, call.wabaId, filter, { beforeId, limit }),
      position: ({ id }) => [id],
    });
    return { data: rows.map(optOutJson), ...rest };
  },
});

const end = restOperation({
  id: 'endOptOut',
  method: 'POST',
  path: '/api/external/opt-outs/end',
  scope: 'send',
  summary: 'End the opt-out of a customer',
  description:
    'Ends the opt-outs that the API or the portal noted, for one number or all, and writes the evidence into the audit log. One that upstream reported ends only when the customer resumes in WhatsApp: where no other is left, the request returns 409 `opt_out_of_upstream`. The response lists those that still hold.',
  tag: 'Opt-outs',
  errors: ['unknown_opt_out', 'opt_out_of_upstream'],
  requests: { customer: { customer: '+1 202-555-0143', evidence: 'signed form of 2026-11-20' } },
  body: namedClosed('OptOutEnd', {
    customer: Customer,
    phoneNumberId: NUMBER,
    evidence: parameter(
      upstreamText(500),
      'How the customer agreed to messages again; without personal data.',
      'signed form of 2026-11-20',
    ),
  }),
  answers: {
    200: {
      schema: Type.Object({
        ended: Type.Integer({ examples: [1] }),
        left: Type.Array(OptOut, { examples: [[]] }),
      }),
      description: 'It has ended.',
    },
  },
  run: async ({ tools, wabaId }, { customer, ...given }) => {
    const { ended, left } = await endCustomerOptOuts(tools, wabaId, readCustomerReference(customer), {
      ...given,
      source: 'api',
    });
    return { ended, left: left.map(optOutJson) };
  },
});

export const OPT_OUT_OPERATIONS = [add, search, end];
