import { type TProperties, Type } from 'typebox';
import type { RequestError } from '../../../platform/request-input.ts';
import { orShown } from '../access/page-error.ts';
import { type FormValues, formOf, formValues } from '../form-values.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { follow, type Next, queryOf } from './view-page.ts';
import { type Place, Visit } from './visit.ts';

type Action = Omit<Place, 'active'> & {
  active?: string;
  fields?: TProperties;
  /** A form that lacks a field is refused. Left out: fields may be missing. */
  needsAll?: true;
  /** Parameters that say where it came from. */
  query?: readonly string[];
  act: (visit: Visit, given: FormValues) => Promise<Next>;
  /** Shows a refusal. Left out: a page with nothing else does. */
  refused?: (visit: Visit, error: RequestError, given: FormValues) => Promise<Next>;
};

/** A button or a form that changes something and leads on. */
export function action(
  app: PortalApp,
  context: PortalContext,
  { path, access, active = '', fields = {}, needsAll, query = [], act, refused }: Action,
): void {
  const body = needsAll ? Type.Object(fields, { additionalProperties: false }) : formOf(fields);
  const schema = { querystring: queryOf(query), body };
  app.post(path, { config: access, schema }, async (request, reply) => {
    const visit = new Visit(request, reply, context);
    const given = formValues(request.body);
    const work = () => act(visit, given);
    const next = refused ? await orShown<Next>(work, (error) => refused(visit, error, given)) : await work();
    return follow(reply, next, active);
  });
}
