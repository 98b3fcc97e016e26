import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  essenceOf,
  HANDLE_MIME_TYPES,
  maxBytesOf,
  mediaKindOf,
  uploadedFileName,
} from '../../features/messages/send/uploaded-media.ts';
import type { PassedAnswer } from '../../platform/graph/graph-pass.ts';
import {
  beginSession,
  ofSession,
  SESSION_TIMEOUT_MS,
  sessionIdIn,
} from '../../platform/graph/graph-uploads.ts';
import { watched } from '../../platform/graph/watched-source.ts';
import { membersOf } from '../../platform/json/json-members.ts';
import { ApiError } from '../errors/api-error.ts';
import type { ExternalApp } from '../external/external-app.ts';
import { sendJsonText } from '../external/schema-kit.ts';
import { accountOf, SCOPES } from '../keys/api-key-auth.ts';
import { makeReader } from '../messages/uploads/client-reader.ts';
import { BODY_LIMIT_BYTES } from '../plugins/body-parsers.ts';
import { callOnce, type HarmlessCall, type Limits } from './call-once.ts';
import { noSuchObject, refusedOtherwise, wrongParameter } from './facade-error.ts';
import { FACADE_ROOTS, type ObjectRoute } from './facade-paths.ts';
import { readPassedBodies } from './pass-bodies.ts';
import { appIdsIn } from './token-info.ts';

type SessionRoute = ObjectRoute & { Body: unknown };
type SessionRequest = FastifyRequest<SessionRoute>;

type SessionCall = Pick<HarmlessCall, 'path' | 'query' | 'object' | 'version'>;

const PREFIX = 'upload:';
const NO_CHANGE = { body: null, object: null };

/**
 * Resumable uploads: POST /{app id}/uploads, then the bytes to POST /upload:{session}, whose answer is the handle that templates
 * and profiles name; GET tells how much has come. The app is always that of the WABA's access token.
 */
export function facadeSessions(app: ExternalApp, pass: Limits): void {
  app.register(async (scope: ExternalApp) => {
    scope.removeAllContentTypeParsers();
    // The handler reads it.
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    for (const root of FACADE_ROOTS) {
      const session = `${root}/:id(^upload:.+$)`;
      const bytes = {
        config: { ...SCOPES.graphManage, readsBody: true },
        handlerTimeout: SESSION_TIMEOUT_MS,
      };
      scope.post<SessionRoute>(session, bytes, async (request, reply) =>
        answered(reply, await takeBytes(pass, request)),
      );
      const look = { config: SCOPES.graphManage, exposeHeadRoute: false };
      scope.get<SessionRoute>(session, look, async (request, reply) =>
        answered(reply, await lookAtSession(pass, request)),
      );
    }
  });
  app.register(async (scope: ExternalApp) => {
    readPassedBodies(scope, BODY_LIMIT_BYTES);
    for (const root of FACADE_ROOTS) {
      const options = { config: SCOPES.graphManage };
      scope.post<SessionRoute>(`${root}/:id/uploads`, options, async (request, reply) =>
        answered(reply, await begin(pass, request)),
      );
    }
  });
}

type Answer = Pick<PassedAnswer, 'status' | 'text'>;

function answered(reply: FastifyReply, { status, text }: Answer): never {
  return sendJsonText(reply.code(status), text);
}

async function begin(pass: Limits, request: SessionRequest): Promise<Answer> {
  if (!(await isOwnApp(pass, request))) throw noSuchObject();
  const { version } = request.params;
  const { body } = request;
  const members = body instanceof FormData ? Object.fromEntries(body) : membersOf(body);
  const file = fileOf({ ...members, ...request.query });
  const call = { ...NO_CHANGE, ...beginSession(file), method: 'POST', version } as const;
  const answer = await callOnce(pass, request, call);
  if (answer.status >= 300) return answer;
  const upstreamId = sessionIdIn(answer);
  if (upstreamId === null) throw refusedOtherwise(answer.status);
  const sessionId = pass.context.cursors.encode(scopeOf(request), [upstreamId, String(file.sizeBytes)]);
  return { ...answer, text: JSON.stringify({ id: `${PREFIX}${sessionId}` }) };
}

/** An app that the WABA sends to, as clients know it, or `app` itself. */
async function isOwnApp(pass: Limits, request: SessionRequest): Promise<boolean> {
  const { id, version } = request.params;
  if (id === 'app') return true;
  if (!/^\d{1,32}$/.test(id)) return false;
  const path = [accountOf(request).wabaId, 'subscribed_apps'];
  const call = { ...NO_CHANGE, method: 'GET', path, query: new URLSearchParams(), version } as const;
  return appIdsIn((await callOnce(pass, request, call)).text).includes(id);
}

/** Throws FacadeError for what upstream would not take, or the header of a template not show. */
function fileOf({ file_name: name, file_length: length, file_type: type }: Record<string, unknown>) {
  const mimeType = essenceOf(String(type)).replace('image/jpg', 'image/jpeg');
  const kind = HANDLE_MIME_TYPES.includes(mimeType) ? mediaKindOf(mimeType) : null;
  if (kind === null) throw wrongParameter(`file_type: Give one of ${HANDLE_MIME_TYPES.join(', ')}.`);
  const sizeBytes = /^[1-9]\d{0,9}$/.test(String(length)) ? Number(length) : 0;
  const maxBytes = maxBytesOf(kind, new Uint8Array());
  if (sizeBytes === 0 || sizeBytes > maxBytes) {
    throw wrongParameter(`file_length: A file of type ${kind} has 1 to ${maxBytes} bytes.`);
  }
  const fileName = uploadedFileName(typeof name === 'string' ? name : '') ?? 'file';
  return { mimeType, fileName, sizeBytes };
}

const scopeOf = (request: SessionRequest) => [accountOf(request).wabaId, 'upload session'];

/** The id of a session holds upstream's and the size of the file. Throws FacadeError for one of another WABA, or none. */
function sessionOf({ context }: Limits, request: SessionRequest): { call: SessionCall; sizeBytes: number } {
  const given = request.params.id.slice(PREFIX.length);
  const [upstreamId, sizeBytes] = context.cursors.decode(scopeOf(request), given) ?? [];
  if (upstreamId === undefined) throw noSuchObject();
  const call = { ...ofSession(upstreamId), object: null, version: request.params.version };
  return { call, sizeBytes: Number(sizeBytes) };
}

async function lookAtSession(pass: Limits, request: SessionRequest): Promise<Answer> {
  const { call } = sessionOf(pass, request);
  const answer = await callOnce(pass, request, { ...call, method: 'GET', body: null });
  if (answer.status >= 300) return answer;
  const text = JSON.stringify({ ...membersOf(JSON.parse(answer.text)), id: request.params.id });
  return { ...answer, text };
}

async function takeBytes(pass: Limits, request: SessionRequest): Promise<Answer> {
  const { raw } = request;
  try {
    const { call, sizeBytes } = sessionOf(pass, request);
    const offset = offsetOf(request, sizeBytes);
    const left = sizeBytes - offset;
    checkLength(request, left);
    const cut = Promise.withResolvers<never>();
    cut.promise.catch(() => {});
    const release = pass.context.uploadSlots.take(accountOf(request).tenantId, cut.reject);
    const source = watched(exactly(left, bytesOf(request, cut.promise)));
    const body = { file: source.bytes, offset, sizeBytes: left };
    const upload = { ...call, method: 'POST', body, timeoutMs: SESSION_TIMEOUT_MS } as const;
    return await callOnce(pass, request, upload)
      .catch((error: unknown) => {
        source.throwFailure();
        throw error;
      })
      .finally(release);
  } finally {
    // What is left of a body that was refused is passed over, so that its sender gets to read the answer.
    raw.resume();
  }
}

function offsetOf({ headers }: SessionRequest, sizeBytes: number): number {
  const given = String(headers.file_offset ?? '0');
  const offset = /^\d{1,10}$/.test(given) ? Number(given) : sizeBytes;
  if (offset < sizeBytes) return offset;
  throw wrongParameter(`file_offset: The session is for a file of ${sizeBytes} bytes.`);
}

const wrongLength = (left: number) =>
  wrongParameter(`The body must be the ${left} bytes of the file from file_offset on.`);

function checkLength({ headers }: SessionRequest, left: number): void {
  const isUnannounced = headers['transfer-encoding'] !== undefined;
  if (!isUnannounced && Number(headers['content-length'] ?? 0) !== left) throw wrongLength(left);
}

async function* bytesOf(request: SessionRequest, cut: Promise<never>): AsyncGenerator<Uint8Array> {
  const readable = makeReader(request, cut, (cause) => new ApiError('invalid_request', { cause }));
  const chunks = request.raw[Symbol.asyncIterator]();
  for (;;) {
    const { value, done } = await readable(() => chunks.next());
    if (done) return;
    yield value;
  }
}

async function* exactly(sizeBytes: number, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let got = 0;
  for await (const chunk of bytes) {
    got += chunk.length;
    if (got > sizeBytes) throw wrongLength(sizeBytes);
    yield chunk;
  }
  if (got < sizeBytes) throw wrongLength(sizeBytes);
}
