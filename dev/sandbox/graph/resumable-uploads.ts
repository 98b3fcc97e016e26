import type { FastifyInstance, FastifyReply } from 'fastify';
import type { UpstreamContext } from '../upstream-context.ts';
import { APP } from './app-subscriptions.ts';
import { answerFault } from './fault-answer.ts';
import { type GraphFailure, invalidParameter, objectMissing } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute } from './graph-page.ts';

const TYPES = ['application/pdf', 'image/jpeg', 'image/jpg', 'image/png', 'video/mp4'];
const MAX_BYTES = 105 * 1024 * 1024;

type UploadRoute = GraphObjectRoute & {
  Querystring: { file_name?: string; file_length?: string; file_type?: string; sig?: string };
  Body: Buffer | undefined;
};

/** POST /{version}/{app}/uploads begins a session, POST /{version}/upload:{session} takes the bytes, GET says how many there are. */
export function registerResumableUploads(app: FastifyInstance, context: UpstreamContext): void {
  const { uploads } = context;
  const session = '/:version(^v\\d+\\.\\d+$)/:id(^upload:.+$)';
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: MAX_BYTES }, (_request, body, done) =>
    done(null, body),
  );
  app.post<UploadRoute>(`${GRAPH_OBJECT_PATH}/uploads`, async ({ params: { id }, query }, reply) => {
    if (id !== 'app' && id !== APP.id) {
      return refuse(reply, objectMissing(id));
    }
    const fault = context.faults.take('upload_session', id);
    if (fault !== undefined && (await answerFault(context, reply, fault, { id }))) {
      return reply;
    }
    const sizeBytes = Number(query.file_length);
    if (!TYPES.includes(query.file_type ?? '') || !(sizeBytes > 0)) {
      return refuse(reply, invalidParameter(100, 'Give file_length and a file_type that is taken'));
    }
    return { id: uploads.begin(query.file_type ?? '', sizeBytes) };
  });
  app.post<UploadRoute>(session, async ({ params: { id }, query, headers, body }, reply) => {
    const found = query.sig === undefined ? undefined : uploads.find(id);
    if (found === undefined) {
      return refuse(reply, objectMissing(id));
    }
    const fault = context.faults.take('upload_session', 'bytes');
    if (fault !== undefined && (await answerFault(context, reply, fault, { id }))) {
      return reply;
    }
    if (Number(headers.file_offset) !== found.gotBytes || body === undefined) {
      return refuse(reply, invalidParameter(100, 'The file_offset is not that of the session'));
    }
    const handle = uploads.take(found, body.length);
    return handle === undefined ? { id, file_offset: found.gotBytes } : { h: handle };
  });
  app.get<UploadRoute>(session, async ({ params: { id }, query }, reply) => {
    const found = query.sig === undefined ? undefined : uploads.find(id);
    return found === undefined
      ? refuse(reply, objectMissing(id))
      : { id: `${id}?sig=${query.sig}`, file_offset: found.gotBytes };
  });
}

function refuse(reply: FastifyReply, { status, body }: GraphFailure): FastifyReply {
  return reply.code(status).send(body);
}
