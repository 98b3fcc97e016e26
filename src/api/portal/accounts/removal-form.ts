import { invalidValue } from '../../../platform/request-input.ts';
import { type Form, type FormPage, formPage } from '../kits/form-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

type Removal<Subject> = Pick<
  FormPage<'confirm', Subject>,
  'path' | 'access' | 'active' | 'title' | 'load' | 'trail'
> & { remove: (visit: Visit) => Promise<string> };

/** The form that removes a tenant or a WABA, once its id was typed. */
export function removal<Subject extends { id: string }>(
  app: PortalApp,
  context: PortalContext,
  { remove, ...page }: Removal<Subject>,
): Form<'confirm', Subject> {
  return formPage(app, context, {
    ...page,
    isPart: true,
    look: 'danger',
    button: 'Remove',
    fields: [
      {
        name: 'confirm',
        label: 'Confirm the id',
        required: true,
        isTypedAgain: true,
        maxLength: 64,
        hint: ({ id }) =>
          html`Type <code>${id}</code>. All its API keys are revoked at once, and its endpoints are deleted with their pending deliveries. The history stays. Only the same tenant can add the WABA again.`,
      },
    ],
    submit: async (visit, given, { id }) => {
      if (given.text('confirm').trim() !== id) throw invalidValue(`Type ${id} to remove it.`, 'confirm');
      return await remove(visit);
    },
  });
}
