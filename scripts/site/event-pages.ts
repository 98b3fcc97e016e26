import { EVENT_TYPES, type EventType, upstreamTypeOf } from '../../src/platform/event-type.ts';
import { KNOWN_FIELDS } from '../../src/platform/upstream-fields.ts';
import {
  type DocumentedOperation,
  type OpenApiDocument,
  operationsOf,
} from '../../test/support/openapi-document.ts';
import { details, headingAnchor, jsonBlock, type Page, paragraphs, table } from './markdown.ts';
import { schemaRows } from './schema-rows.ts';

/** Where the page of an event type is, without ending. */
export function eventPath(type: string): string {
  return type.startsWith('upstream.') ? `events/upstream` : `events/${type.replaceAll('.', '-')}`;
}

/** The event catalogue: a list of all types, a page for each of ours, and one for those of upstream. */
export function eventPages(document: OpenApiDocument): Page[] {
  const operations = new Map(
    operationsOf(document, 'webhooks').map((operation) => [operation.path, operation] as const),
  );
  const operationOf = (type: EventType) => {
    const operation = operations.get(type);
    if (operation === undefined) throw new Error(`the OpenAPI document has no webhook ${type}`);
    return operation;
  };
  const upstream = KNOWN_FIELDS.map((field) => operationOf(upstreamTypeOf(field)));
  return [
    { path: 'events/index.md', text: indexText(EVENT_TYPES.map(operationOf), upstream) },
    ...EVENT_TYPES.map((type) => ({
      path: `${eventPath(type)}.md`,
      text: paragraphs([`# ${type}`, ...eventText(document, operationOf(type))]),
    })),
    { path: 'events/upstream.md', text: upstreamText(document, upstream) },
  ];
}

function indexText(core: readonly DocumentedOperation[], upstream: readonly DocumentedOperation[]): string {
  const rowOf = ({ path, summary = '', description = '' }: DocumentedOperation) => [
    `[\`${path}\`](./${linkOf(path)})`,
    `${summary}. ${path.startsWith('upstream.') ? '' : description}`.trim(),
  ];
  const headers = core[0]?.parameters ?? [];
  return paragraphs([
    '# Event catalogue',
    'The events that your endpoints receive. All have the same envelope; only `data` depends on the type. [Webhooks](../tenants/webhooks.md) explains signatures, retries and order.',
    table(['type', 'meaning'], core.map(rowOf)),
    '## On request',
    'What the upstream platform reports in other fields, unmodified. An endpoint receives it only if its event types name it, or `upstream.*` for all. Other fields than these work too.',
    table(['type', 'meaning'], upstream.map(rowOf)),
    '## Headers',
    'Every webhook has them.',
    table(
      ['header', 'meaning', 'example'],
      headers.map(({ name, description, example }) => [
        `\`${name}\``,
        String(description ?? ''),
        example === undefined ? '' : `\`${String(example)}\``,
      ]),
    ),
  ]);
}

function linkOf(type: string): string {
  const page = `${eventPath(type).replace('events/', '')}.md`;
  return type.startsWith('upstream.') ? `${page}#${headingAnchor(type)}` : page;
}

function eventText(document: OpenApiDocument, operation: DocumentedOperation): string[] {
  const { summary = '', description = '' } = operation;
  const media = operation.requestBody?.content['application/json'];
  const [example] = Object.values(media?.examples ?? {});
  return [
    `${summary}. ${description}`,
    '## Example',
    jsonBlock(example?.value),
    '## Members',
    table(['member', 'type', 'always', 'meaning'], schemaRows(document, media?.schema)),
    '## Schema',
    details('JSON Schema', jsonBlock(media?.schema)),
    'The [event catalogue](./index.md) has the headers, [Webhooks](../tenants/webhooks.md) the rest.',
  ];
}

function upstreamText(document: OpenApiDocument, operations: readonly DocumentedOperation[]): string {
  const [first] = operations;
  const schema = first?.requestBody?.content['application/json']?.schema;
  return paragraphs([
    '# upstream events',
    'What the upstream platform reports in fields that have no event type here, unmodified. An endpoint asks for them by name or with `upstream.*`.',
    '## Members',
    table(['member', 'type', 'always', 'meaning'], schemaRows(document, schema)),
    ...operations.flatMap(({ path, summary = '', requestBody }) => {
      const [example] = Object.values(requestBody?.content['application/json']?.examples ?? {});
      return [`## ${path}`, `${summary}.`, details('Example', jsonBlock(example?.value))];
    }),
  ]);
}
