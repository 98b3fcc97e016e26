import type { FastifyInstance, FastifyRequest } from 'fastify';
import { unreadableBody, utf8Text } from '../../platform/http/utf8-text.ts';
import { hasMoreValues, MAX_VALUES } from '../../platform/json/json-values.ts';
import { ApiError } from '../errors/api-error.ts';
import { tooMany } from './body-parsers.ts';

/**
 * Bodies of JSON are read as UTF-8 or refused, never changed. One that is empty is none, whatever its type: many clients
 * always send that header. JSON with too many values is not parsed. Upstream's bodies have their own parser.
 */
export function readTextBodies(app: FastifyInstance): void {
  app.addHook('preParsing', (request, _reply, payload, done) => {
    if (hasNoBody(request)) leaveOutType(request);
    else if (request.routeOptions.config.keepsBytes !== true) {
      const message = unreadableBody(request.headers);
      if (message !== null) return done(new ApiError('unsupported_media_type', { message }));
    }
    done(null, payload);
  });
  const parse = app.getDefaultJsonParser('error', 'error');
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, bytes, done) => {
    const text = utf8Text(bytes as Buffer);
    if (text === null) return done(notUtf8());
    if (text === '') return done(null, undefined);
    if (hasMoreValues(text, MAX_VALUES)) return done(tooMany(`${MAX_VALUES} values`));
    parse(request, text, done);
  });
}

function notUtf8(): ApiError {
  return new ApiError('invalid_json', { message: 'The body is not UTF-8.' });
}

function hasNoBody({ headers }: FastifyRequest): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return encoding === undefined && Number(length) === 0;
}

/** Forms with files are looked at by the routes that take them. */
function leaveOutType({ headers }: FastifyRequest): void {
  if (!/^\s*multipart\//i.test(headers['content-type'] ?? '')) delete headers['content-type'];
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The bytes of a body are kept as they are, and are not read here. */
    keepsBytes?: boolean;
  }
}
