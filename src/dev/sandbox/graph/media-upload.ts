import type { FastifyInstance } from 'fastify';
import type { UpstreamContext } from '../upstream-context.ts';
import { answerFault } from './fault-answer.ts';
import { invalidParameter, objectMissing } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute } from './graph-paths.ts';

type UploadedFile = { bytes: Buffer; mimeType: string; filename: string };

/** Reads the form with the parser of the platform; undefined when it is not a complete upload. */
async function readUpload(body: unknown, contentType: string | undefined): Promise<UploadedFile | undefined> {
  if (!Buffer.isBuffer(body) || contentType === undefined) {
    return undefined;
  }
  try {
    const headers = { 'content-type': contentType };
    const form = await new Response(new Uint8Array(body), { headers }).formData();
    const file = form.get('file');
    const type = form.get('type');
    if (form.get('messaging_product') !== 'whatsapp' || file === null || typeof file === 'string') {
      return undefined;
    }
    const bytes = Buffer.from(await file.arrayBuffer());
    return { bytes, mimeType: typeof type === 'string' ? type : file.type, filename: file.name };
  } catch {
    return undefined;
  }
}

const MIB = 1024 * 1024;

/** The largest file of each MIME type; stickers may have 500 KiB when they are animated. */
const MAX_BYTES: ReadonlyMap<string, number> = new Map([
  ...['image/jpeg', 'image/png'].map((type) => [type, 5 * MIB] as const),
  ...['audio/aac', 'audio/amr', 'audio/mpeg', 'audio/mp4', 'audio/ogg'].map(
    (type) => [type, 16 * MIB] as const,
  ),
  ...['video/mp4', 'video/3gpp'].map((type) => [type, 16 * MIB] as const),
  ...['text/plain', 'application/pdf', 'application/msword'].map((type) => [type, 100 * MIB] as const),
  ...['application/vnd.ms-excel', 'application/vnd.ms-powerpoint'].map((type) => [type, 100 * MIB] as const),
  ...['wordprocessingml.document', 'spreadsheetml.sheet', 'presentationml.presentation'].map(
    (form) => [`application/vnd.openxmlformats-officedocument.${form}`, 100 * MIB] as const,
  ),
  ['image/webp', 500 * 1024],
]);

/** Why the platform would not take a file, or undefined. */
function fileProblem({ bytes, mimeType }: UploadedFile): string | undefined {
  const maxBytes = MAX_BYTES.get((mimeType.split(';', 1)[0] ?? '').trim());
  if (maxBytes === undefined) {
    const types = [...MAX_BYTES.keys()].join(', ');
    return `Param file must be a file with one of the following types: ${types}. Received file of type '${mimeType}'.`;
  }
  if (bytes.length === 0) {
    return 'Param file is empty.';
  }
  return bytes.length > maxBytes ? `Param file must be at most ${maxBytes} bytes.` : undefined;
}

/** POST /{version}/{phone}/media: takes a multipart upload and answers with its media id. */
export function registerMediaUpload(app: FastifyInstance, context: UpstreamContext): void {
  app.post<GraphObjectRoute>(`${GRAPH_OBJECT_PATH}/media`, async (request, reply) => {
    const { id } = request.params;
    if (context.phones.find(id) === undefined) {
      const { status, body } = objectMissing(id);
      return reply.code(status).send(body);
    }
    const fault = context.faults.take('media_upload', id);
    if (fault !== undefined && (await answerFault(context, reply, fault, { id }))) {
      return reply;
    }
    const upload = await readUpload(request.body, request.headers['content-type']);
    if (upload === undefined) {
      const details = 'An upload is a form with messaging_product=whatsapp, type and file';
      const { status, body } = invalidParameter(100, details);
      return reply.code(status).send(body);
    }
    const problem = fileProblem(upload);
    if (problem !== undefined) {
      const { status, body } = invalidParameter(100, problem);
      return reply.code(status).send(body);
    }
    return { id: context.media.put(upload).id };
  });
}
