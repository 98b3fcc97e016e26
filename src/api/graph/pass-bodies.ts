import type { FastifyRequest } from 'fastify';
import { lastValues } from '../../platform/http/form-text.ts';
import { delimiterOf, delimitersIn } from '../../platform/http/multipart-parts.ts';
import type { ExternalApp } from '../external/external-app.ts';
import { BODY_LIMIT_BYTES, readFormBodies } from '../plugins/body-parsers.ts';
import { wrongParameter } from './facade-error.ts';

/** The JSON of a flow: as a member of the call that creates it, and as a file. */
const FLOW_LIMIT_BYTES = 1024 * 1024;
const FILE_LIMIT_BYTES = 12 * 1024 * 1024;

/** Paths behind an object, with what bodies and forms with files may have there; flows are larger than all else. */
export const PASSED_PATHS = [
  {
    paths: ['/:id', '/:id/:edge', '/:id/:edge/:part'],
    bodyBytes: BODY_LIMIT_BYTES,
    fileBytes: BODY_LIMIT_BYTES,
  },
  { paths: ['/:id/calls'], edge: 'calls', bodyBytes: BODY_LIMIT_BYTES, fileBytes: BODY_LIMIT_BYTES },
  { paths: ['/:id/flows'], edge: 'flows', bodyBytes: FLOW_LIMIT_BYTES, fileBytes: FLOW_LIMIT_BYTES },
  { paths: ['/:id/assets'], edge: 'assets', bodyBytes: BODY_LIMIT_BYTES, fileBytes: FILE_LIMIT_BYTES },
];

const MAX_PARTS = 50;
const MAX_PART_HEAD_BYTES = 8 * 1024;

/** Bodies of calls that are passed on; forms with files may have `fileBytes`, and are read as a whole. */
export function readPassedBodies(scope: ExternalApp, fileBytes: number): void {
  scope.addContentTypeParser(
    'multipart/form-data',
    { parseAs: 'buffer', bodyLimit: fileBytes },
    (request: FastifyRequest, body: Buffer) => readForm(request.headers['content-type'] ?? '', body),
  );
  // Of a field that is there more than once the last counts.
  readFormBodies(scope, lastValues);
}

async function readForm(contentType: string, body: Buffer): Promise<FormData> {
  const delimiter = delimiterOf(contentType);
  if (delimiter === null || !isModest(body, delimiter)) throw wrongParameter('The form cannot be read.');
  const headers = { 'content-type': `multipart/form-data; boundary="${delimiter.slice(2)}"` };
  try {
    return await new Response(new Uint8Array(body), { headers }).formData();
  } catch {
    throw wrongParameter('The form cannot be read.');
  }
}

/** Whether a form has few parts with short heads. */
function isModest(body: Buffer, delimiter: string): boolean {
  const places = delimitersIn(body, delimiter, MAX_PARTS + 1);
  const isShort = (at: number) => {
    const head = body.subarray(at, at + MAX_PART_HEAD_BYTES);
    return head.length < MAX_PART_HEAD_BYTES || head.includes('\r\n\r\n');
  };
  return places.length <= MAX_PARTS && places.every(isShort);
}
