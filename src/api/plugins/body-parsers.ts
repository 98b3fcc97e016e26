import type { FastifyInstance } from 'fastify';
import { type FormFields, readFormText } from '../../platform/http/form-text.ts';
import { ApiError, invalidParameter } from '../errors/api-error.ts';

/** Of bodies; routes that take more say so. */
export const BODY_LIMIT_BYTES = 64 * 1024;

/** The largest form of the portal has some 120: a page of deliveries that are selected. */
const MAX_FIELDS = 200;

/** Forms as browsers send them without files; `read` makes the body of the fields. */
export function readFormBodies(
  scope: FastifyInstance,
  read: (fields: FormFields) => unknown = (fields) => fields,
): void {
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'buffer' },
    (_request, bytes, done) => {
      const fields = readFormText(bytes as Buffer, MAX_FIELDS);
      if (fields === 'too many fields') done(tooMany(`${MAX_FIELDS} fields`));
      else if (fields === 'not UTF-8') done(invalidParameter('', 'The form is not UTF-8.'));
      else done(null, read(fields));
    },
  );
}

export function tooMany(limit: string): ApiError {
  return new ApiError('body_too_large', { message: `A request body has up to ${limit}.` });
}
