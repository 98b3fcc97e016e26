import {
  type DocumentedOperation,
  followed,
  type OpenApiDocument,
  operationsOf,
} from '../../test/support/openapi-document.ts';
import { curlOf } from './curl-sample.ts';
import {
  codeBlock,
  details,
  headingAnchor,
  jsonBlock,
  type Page,
  paragraphs,
  table,
  withFrontmatter,
} from './markdown.ts';
import { formsOf, schemaRows } from './schema-rows.ts';

type Tag = { name: string; description: string };

/** The tags of the API with their operations, in the order of the document; what the service itself sends is not among them. */
export function operationGroups(
  document: OpenApiDocument,
): { tag: Tag; operations: DocumentedOperation[] }[] {
  const operations = operationsOf(document);
  return (document.tags as Tag[])
    .map((tag) => ({ tag, operations: operations.filter(({ tags }) => tags?.includes(tag.name)) }))
    .filter(({ operations: found }) => found.length > 0);
}

/** Where the page of a tag is, without ending. */
export function tagPath(tag: string): string {
  return `api/${headingAnchor(tag)}`;
}

/** The API reference: a list of all operations, and a page for each tag. */
export function apiPages(document: OpenApiDocument): Page[] {
  const groups = operationGroups(document);
  const pages = groups.map(({ tag, operations }) => ({
    path: `${tagPath(tag.name)}.md`,
    // "Parameters" stands below each operation: the outline names the operations alone.
    text: withFrontmatter(
      { outline: 2 },
      paragraphs([
        `# ${tag.name}`,
        tag.description,
        operationTable(tag.name, operations, '.'),
        ...operations.map((operation) => operationText(document, operation)),
      ]),
    ),
  }));
  return [{ path: 'api/index.md', text: indexText(document, groups) }, ...pages];
}

/** The reference of the platform API, on one page. */
export function platformApiPage(document: OpenApiDocument): Page {
  const { description } = document.info as { description: string };
  const sections = operationGroups(document).flatMap(({ tag, operations }) => [
    `# ${tag.name}`,
    tag.description,
    ...operations.map((operation) => operationText(document, operation)),
  ]);
  const text = paragraphs([
    '# Platform API reference',
    description.replaceAll('`/docs/errors`', '[Errors](../errors.md)'),
    'An installation serves this description at `/api/platform/openapi.json`; [Run Heliograph inside your product](../operators/provisioning.md) explains how the parts work together.',
    ...sections,
  ]);
  return { path: `${PLATFORM_API}/index.md`, text: withFrontmatter({ outline: 2 }, text) };
}

/** Where that page is. */
export const PLATFORM_API = 'platform-api';

function indexText(document: OpenApiDocument, groups: ReturnType<typeof operationGroups>): string {
  const { description, version } = document.info as { description: string; version: string };
  const sections = groups.flatMap(({ tag, operations }) => [
    `## ${tag.name}`,
    tag.description,
    operationTable(tag.name, operations, '.'),
  ]);
  return paragraphs([
    '# API reference',
    // A path in backticks becomes a link here.
    description.replaceAll('`/docs/errors`', '[Errors](../errors.md)'),
    `This is version ${version}, made from the same description that validates the requests. An installation serves it at \`/api/external/openapi.json\`; [External API](../tenants/api.md) explains how the parts work together.`,
    ...sections,
  ]);
}

function operationTable(tag: string, operations: readonly DocumentedOperation[], from: string): string {
  const page = `${from}/${tagPath(tag).replace('api/', '')}.md`;
  const rows = operations.map(({ method, path, summary = '', operationId = '' }) => [
    `${verb(method)} \`${path}\``,
    `[${summary}](${page}#${operationId.toLowerCase()})`,
  ]);
  return table(['request', 'does'], rows);
}

/** The method with the colour that the style sheet gives it. */
function verb(method: string): string {
  return `\`${method}\`{.verb .verb-${method.toLowerCase()}}`;
}

function operationText(document: OpenApiDocument, operation: DocumentedOperation): string {
  const { method, path, summary = '', description = '', operationId = '' } = operation;
  return paragraphs([
    `## ${summary} {#${operationId.toLowerCase()}}`,
    `${verb(method)} \`${path}\``,
    description,
    codeBlock('sh', curlOf(operation)),
    parametersText(operation),
    bodyText(document, operation),
    answersText(document, operation),
    errorsText(operation),
  ]);
}

function parametersText({ parameters }: DocumentedOperation): string {
  const rows = parameters.map(({ name, in: place, required, description, schema, example }) => {
    const [, type = ''] =
      schemaRows({ components: {} } as OpenApiDocument, { properties: { [name]: schema } })[0] ?? [];
    const shown = example === undefined ? '' : `Example: \`${String(example)}\`.`;
    return [
      `\`${name}\``,
      place,
      type,
      required === true ? 'yes' : '',
      `${String(description ?? '')} ${shown}`.trim(),
    ];
  });
  return paragraphs(
    ['### Parameters', table(['parameter', 'in', 'type', 'required', 'meaning'], rows)].slice(
      rows.length === 0 ? 2 : 0,
    ),
  );
}

function bodyText(document: OpenApiDocument, { requestBody }: DocumentedOperation): string {
  const [[type, media] = []] = Object.entries(requestBody?.content ?? {});
  if (media === undefined) return '';
  const forms = formsOf(document, media.schema);
  const tables = forms.map(({ name, schema }) => {
    const rows = table(['member', 'type', 'required', 'meaning'], schemaRows(document, schema));
    return forms.length === 1 ? rows : details(name, rows);
  });
  const examples = Object.entries(media.examples ?? {}).map(([name, { value }]) =>
    details(`Example: ${name}`, jsonBlock(value)),
  );
  const kind = `\`${type}\`${requestBody?.required === true ? '' : ', can be left out'}.`;
  return paragraphs(['### Body', kind, ...tables, ...examples]);
}

function answersText(document: OpenApiDocument, { responses }: DocumentedOperation): string {
  const answers = Object.entries(responses).filter(([status]) => Number(status) < 400);
  const texts = answers.map(([status, { description, content }]) => {
    const [[type, media] = []] = Object.entries(content ?? {});
    const [example] = Object.values(media?.examples ?? {});
    const rows = media === undefined ? [] : schemaRows(document, followed(document, media.schema));
    return paragraphs([
      `**${status}** ${description}`,
      example === undefined || type !== 'application/json' ? '' : jsonBlock(example.value),
      details('Members', table(['member', 'type', 'always', 'meaning'], rows)),
    ]);
  });
  return paragraphs(['### Response', ...texts]);
}

/** Each code leads to its place on the page of errors. */
function errorsText({ responses }: DocumentedOperation): string {
  const failures = Object.entries(responses).filter(([status]) => Number(status) >= 400);
  const rows = failures.map(([status, { description }]) => {
    const codes = [...description.matchAll(/^`(\w+)`/gm)].map(([, code = '']) => code);
    return [status, codes.map((code) => `[\`${code}\`](../errors.md#${code})`).join(', ') || description];
  });
  return paragraphs(['### Errors', table(['status', 'codes'], rows)]);
}
