import type { FastifyInstance } from 'fastify';
import type { UpstreamContext } from '../upstream-context.ts';
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

/** POST /{version}/{phone}/media: takes a multipart upload and answers with its media id. */
export function registerMediaUpload(app: FastifyInstance, context: UpstreamContext): void {
  app.post<GraphObjectRoute>(`${GRAPH_OBJECT_PATH}/media`, async (request, reply) => {
    const { id } = request.params;
    if (context.phones.find(id) === undefined) {
      const { status, body } = objectMissing(id);
      return reply.code(status).send(body);
    }
    const upload = await readUpload(request.body, request.headers['content-type']);
    if (upload === undefined) {
      const details = 'An upload is a form with messaging_product=whatsapp, type and file';
      const { status, body } = invalidParameter(100, details);
      return reply.code(status).send(body);
    }
    return { id: context.media.put(upload).id };
  });
}
