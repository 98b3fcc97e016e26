import type { FastifyInstance } from 'fastify';
import { ApiError } from '../errors/api-error.ts';

/** Refuses the JSON value null as a body: Fastify validates it as if there were none. */
export function refuseNullBody(scope: FastifyInstance): void {
  scope.addHook('preValidation', (request, _reply, done) => {
    if (request.body !== null) return done();
    done(new ApiError('invalid_parameter', { message: 'The body must be a JSON object.' }));
  });
}
