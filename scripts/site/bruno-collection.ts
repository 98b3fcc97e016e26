import type { DocumentedOperation, OpenApiDocument } from '../../test/support/openapi-document.ts';
import { operationGroups } from './api-pages.ts';

/** The files of the collection by path. */
export function brunoCollection(document: OpenApiDocument): Map<string, string | Buffer> {
  const collection = {
    version: '1',
    name: 'Heliograph',
    type: 'collection',
    ignore: ['node_modules', '.git'],
  };
  const files = new Map<string, string | Buffer>([
    ['bruno.json', `${JSON.stringify(collection, null, 2)}\n`],
    ['collection.bru', blocks({ auth: ['mode: bearer'], 'auth:bearer': ['token: {{apiKey}}'] })],
    ['environments/npm start.bru', environmentText()],
    ['picture.jpg', PICTURE],
  ]);
  for (const [index, { tag, operations }] of operationGroups(document).entries()) {
    const folder = fileName(tag.name);
    const meta = [`name: ${tag.name}`, `seq: ${index + 1}`];
    files.set(`${folder}/folder.bru`, blocks({ meta, docs: lines(tag.description) }));
    for (const [place, operation] of operations.entries()) {
      files.set(`${folder}/${operation.operationId}.bru`, requestText(operation, place + 1));
    }
  }
  return files;
}

/** The key is a secret: the application keeps it, and no file has it. */
function environmentText(): string {
  return `${blocks({ vars: ['baseUrl: http://127.0.0.1:8080'] })}vars:secret [\n  apiKey\n]\n`;
}

function requestText(operation: DocumentedOperation, seq: number): string {
  const { method, path, summary = '', description = '', security, requestBody } = operation;
  const [[type, media] = []] = Object.entries(requestBody?.content ?? {});
  const isForm = type === 'multipart/form-data';
  const [example] = Object.values(media?.examples ?? {});
  const body = media === undefined ? 'none' : isForm ? 'multipartForm' : 'json';
  const { query, inPath, headers } = parametersOf(operation);
  const address = path.replaceAll(/\{(\w+)\}/g, ':$1');
  return blocks({
    meta: [`name: ${summary}`, 'type: http', `seq: ${seq}`],
    [method.toLowerCase()]: [
      `url: {{baseUrl}}${address}`,
      `body: ${body}`,
      `auth: ${security?.length === 0 ? 'none' : 'inherit'}`,
    ],
    'params:query': query,
    'params:path': inPath,
    headers,
    'body:json': body === 'json' ? lines(JSON.stringify(example?.value ?? {}, null, 2)) : [],
    'body:multipart-form': isForm ? ['file: @file(picture.jpg) @contentType(image/jpeg)'] : [],
    docs: lines(description),
  });
}

/** What is not required is there, switched off: a sign of the format is a tilde before the name. */
function parametersOf({ parameters }: DocumentedOperation) {
  const of = (place: string) =>
    parameters
      .filter((parameter) => parameter.in === place)
      .map(({ name, example, required }) => {
        return `${required === true || place === 'path' ? '' : '~'}${name}: ${String(example ?? '')}`;
      });
  return { query: of('query'), inPath: of('path'), headers: of('header') };
}

function blocks(parts: Readonly<Record<string, readonly string[]>>): string {
  const texts = Object.entries(parts)
    .filter(([, content]) => content.length > 0)
    .map(([name, content]) => `${name} {\n${content.map((line) => `  ${line}`.trimEnd()).join('\n')}\n}\n`);
  return texts.join('\n');
}

function lines(text: string): string[] {
  return text.split('\n');
}

function fileName(tag: string): string {
  return tag.toLowerCase().replaceAll(' ', '-');
}

/** A JPEG of one pixel, for the upload. */
const PICTURE = Buffer.from(
  '/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsOCwkJDRENDg8QEBEQCgwSExIQEw8QEBD/wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAACf/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AVN//2Q==',
  'base64',
);
