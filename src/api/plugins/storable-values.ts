import type { FastifyInstance } from 'fastify';
import { ApiError } from '../errors/api-error.ts';
import { storableProblem } from '../messages/send/problems.ts';

const MAX_PARAM_CHARS = 200;

/** Refuses bodies and queries of this scope that hold what no database takes: U+0000, half characters, endless nesting. */
export function requireStorableValues(scope: FastifyInstance): void {
  scope.addHook('preValidation', (request, _reply, done) => {
    const problem = storableProblem(request.body ?? null) ?? storableProblem(request.query);
    if (problem === null) return done();
    const param = problem.param.slice(0, MAX_PARAM_CHARS);
    done(new ApiError('invalid_parameter', { message: problem.message, ...(param !== '' && { param }) }));
  });
}
