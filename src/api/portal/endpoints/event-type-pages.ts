import {
  type CoreEventType,
  EVENT_TYPES,
  MESSAGE_BATCH,
  upstreamTypeOf,
} from '../../../platform/event-type.ts';
import { KNOWN_FIELDS } from '../../../platform/upstream-fields.ts';
import {
  EVENT_BODIES,
  MESSAGE_BATCH_BODY,
  UPSTREAM_EVENT_BODY,
} from '../../openapi/webhooks/event-body-schemas.ts';
import { upstreamExample } from '../../openapi/webhooks/upstream-examples.ts';
import { BATCH_EXAMPLE, WEBHOOK_EXAMPLES } from '../../openapi/webhooks/webhook-examples.ts';
import { webhookOperations } from '../../openapi/webhooks/webhook-operations.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { codeBlock } from '../components/copyable.ts';
import { dataTable } from '../components/table.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { verifySamples } from './secret-page.ts';

type Header = { name: string; required: boolean; description: string; example: string };
type Operation = { summary: string; description: string; parameters: Header[] };

/** When each of them is sent; what it is says the API description. */
const SENT: Readonly<Record<CoreEventType, string>> = {
  message:
    'At once when a customer writes to one of your numbers: text, media, location, contacts, buttons, reactions, carts.',
  status: 'When a message that you sent is sent, delivered, read or has failed.',
  payment: 'When a payment that you asked for is captured, pending, failed or refunded.',
  order:
    'When a customer sends a cart; it waits for the names and pictures of the products, for a few seconds at most.',
  'media.ready': 'After its message, once the file is downloaded, checked and stored.',
  test: 'When a user presses “Send test event”, or by API or command.',
  'window.closing':
    'Some minutes before the customer service window of a conversation ends, to endpoints whose event types name it. A customer who writes again postpones it.',
  preference:
    'When a customer stops or resumes messages, in WhatsApp, by a word of yours or through your team, to endpoints whose event types name it.',
};

const SENT_TOGETHER =
  'In place of message, to endpoints that buffer, when several messages came until the conversation was quiet.';

const SENT_ON_REQUEST =
  'At once when upstream reports it, to endpoints whose event types name it or upstream.*, and kept for those that ask later. The upstream app must subscribe to the field.';

type Documented = { type: string; sent: string; body: unknown; example: unknown };

/** The events of the product, and what upstream reports in the other fields that are known. */
const DOCUMENTED: readonly Documented[] = [
  ...EVENT_TYPES.map((type) => ({
    type,
    sent: SENT[type],
    body: EVENT_BODIES[type],
    example: WEBHOOK_EXAMPLES[type],
  })),
  { type: MESSAGE_BATCH, sent: SENT_TOGETHER, body: MESSAGE_BATCH_BODY, example: BATCH_EXAMPLE },
  ...KNOWN_FIELDS.map((field) => ({
    type: upstreamTypeOf(field),
    sent: SENT_ON_REQUEST,
    body: UPSTREAM_EVENT_BODY,
    example: upstreamExample(field),
  })),
];

type Operations = Readonly<Record<string, { post: Operation }>>;

const PATH = '/portal/w/:wabaId/event-types';

export function eventTypePages(app: PortalApp, context: PortalContext): void {
  const operations = webhookOperations(new Map()) as Operations;
  const place = { access: PAGES.member, active: 'event-types' };
  viewPage(app, context, { ...place, path: PATH, view: ({ path }) => catalogue(path, operations) });
  viewPage(app, context, {
    ...place,
    path: `${PATH}/:type`,
    view: (visit) => {
      const name = visit.param('type');
      const documented = DOCUMENTED.find(({ type }) => type === name);
      const operation = operations[name]?.post;
      if (documented === undefined || operation === undefined) throw pageNotFound();
      return eventTypeView(visit, documented, operation);
    },
  });
}

function catalogue(path: string, operations: Operations): PageView {
  const linked = (type: string): Child[] => [
    html`<a class="mono" href="${path}/${type}">${type}</a>`,
    operations[type]?.post.summary,
  ];
  const rows = [
    ...EVENT_TYPES.map((type): Child[] => [...linked(type), SENT[type]]),
    [...linked(MESSAGE_BATCH), SENT_TOGETHER],
  ];
  const upstream = KNOWN_FIELDS.map((field): Child[] => linked(upstreamTypeOf(field)));
  return {
    title: 'Event types',
    lead: 'The events that your endpoints receive. All have the same envelope; only data depends on the type.',
    assets: ['webhooks.css'],
    body: html`${dataTable('Event types', [{ label: 'Type', kind: 'narrow' }, 'Meaning', 'When it is sent'], rows)}
<h2>On request</h2>
<p class="lead">What the upstream platform reports in other fields, unmodified. An endpoint receives it only if its event types name it, or <code>upstream.*</code> for all. Other fields than these work too.</p>
${dataTable('Event types on request', [{ label: 'Type', kind: 'narrow' }, 'Meaning'], upstream)}
<h2>Headers</h2>${headerTable(operations.message?.post.parameters ?? [])}
<h2>Verify the signature</h2>
<p class="lead">Verify it over the raw bytes, before you parse them, and refuse a webhook-timestamp more than five minutes from your clock.</p>
${verifySamples({ format: 'heliograph', asymmetricSignature: 'none' })}`,
  };
}

function headerTable(headers: readonly Header[]): Markup {
  const rows = headers.map(({ name, description, example }): Child[] => [
    html`<code>${name}</code>`,
    description.replaceAll('`', ''),
    html`<code class="break">${example}</code>`,
  ]);
  return dataTable('Headers', [{ label: 'Header', kind: 'narrow' }, 'Value', 'Example'], rows);
}

function eventTypeView(
  visit: Visit,
  { type, sent, body, example }: Documented,
  { summary, description }: Operation,
): PageView {
  const rows = schemaRows(body).map((row): Child[] => [
    html`<code>${row.path}</code>`,
    row.type,
    row.isRequired ? 'always' : html`<span class="faint">can be missing</span>`,
    row.description.replaceAll('`', ''),
  ]);
  const columns = ['Member', 'Type', { label: 'Present', kind: 'narrow' as const }, 'Meaning'];
  return {
    title: type,
    lead: `${summary}. ${description.replaceAll('`', '')}`,
    trail: [{ label: 'Event types', href: visit.at(PATH) }],
    actions: html`<a class="button" href="${visit.at('/portal/w/:wabaId/deliveries')}?eventType=${type}">Deliveries of this type</a>`,
    assets: ['webhooks.css'],
    body: html`<p>${sent}</p>
<h2>Example</h2>${codeBlock(JSON.stringify(example, null, 2), `Example of ${type}`)}
<h2>Members</h2><p class="hint">New members can appear at any time: ignore those that you do not know.</p>
${dataTable(`Members of ${type}`, columns, rows)}
<details class="quiet"><summary>JSON Schema</summary>${codeBlock(schemaText(body), `JSON Schema of ${type}`)}</details>`,
  };
}

/** Without the marks that the schema library leaves. */
function schemaText(schema: unknown): string {
  return JSON.stringify(schema, (name, value: unknown) => (name.startsWith('~') ? undefined : value), 2);
}

type SchemaRow = { path: string; type: string; isRequired: boolean; description: string };

type Schema = {
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  format?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
};

const MAX_DEPTH = 6;

/** The members of a schema one by one, for a table: `data.items[].quantity`. */
function schemaRows(schema: unknown, prefix = '', depth = 0): SchemaRow[] {
  const { properties = {}, required = [] } = schema as Schema;
  if (depth > MAX_DEPTH) return [];
  return Object.entries(properties).flatMap(([name, member]) => {
    const path = `${prefix}${name}`;
    const row = {
      path,
      type: typeOf(member),
      isRequired: required.includes(name),
      description: member.description ?? '',
    };
    const inner = member.type === 'array' ? member.items : member;
    return [row, ...schemaRows(inner ?? {}, member.type === 'array' ? `${path}[].` : `${path}.`, depth + 1)];
  });
}

function typeOf(schema: Schema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeOf).join(' or ');
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' or ');
  if (schema.type === 'array') return `array of ${typeOf(schema.items ?? {})}`;
  if (schema.format !== undefined) return `${schema.type ?? 'string'} (${schema.format})`;
  return schema.type ?? 'anything';
}
