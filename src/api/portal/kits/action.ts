import type { FastifyReply } from 'fastify';
import type { TProperties } from 'typebox';
import { type FormValues, formOf, formValues } from '../form-values.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { queryOf } from './view-page.ts';
import { type Place, Visit } from './visit.ts';

type Action = Omit<Place, 'active'> & {
  /** The hidden fields beside the button. */
  fields?: TProperties;
  /** Parameters that say where it came from. */
  query?: readonly string[];
  /** Returns where to go, or a page. */
  act: (visit: Visit, given: FormValues) => Promise<string | FastifyReply>;
};

/** A button that changes something and leads on. */
export function action(
  app: PortalApp,
  context: PortalContext,
  { path, access, fields = {}, query = [], act }: Action,
): void {
  const schema = { querystring: queryOf(query), body: formOf(fields) };
  app.post(path, { config: access, schema }, async (request, reply) => {
    const next = await act(new Visit(request, reply, context), formValues(request.body));
    return typeof next === 'string' ? reply.redirect(next, 303) : next;
  });
}
