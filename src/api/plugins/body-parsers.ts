import type { FastifyInstance } from 'fastify';
import { type FormFields, readFormText } from '../../platform/http/form-text.ts';
import { ApiError } from '../errors/api-error.ts';

/** Of bodies; routes that take more say so. */
export const BODY_LIMIT_BYTES = 64 * 1024;

/** More than any request needs. What a body costs depends on its values more than on its bytes. */
export const MAX_VALUES = 10_000;

/** The largest form of the portal has some 120: a page of deliveries that are selected. */
const MAX_FIELDS = 200;

/** Forms as browsers send them without files; `read` makes the body of the fields. */
export function readFormBodies(
  scope: FastifyInstance,
  read: (fields: FormFields) => unknown = (fields) => fields,
): void {
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    (_request, body, done) => {
      const fields = readFormText(String(body), MAX_FIELDS);
      if (fields === null) done(tooMany(`${MAX_FIELDS} fields`));
      else done(null, read(fields));
    },
  );
}

export function tooMany(limit: string): ApiError {
  return new ApiError('body_too_large', { message: `A request body has up to ${limit}.` });
}
