import { postForm } from '../components/form.ts';
import { type Child, html } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { action } from './action.ts';
import { viewPage } from './view-page.ts';
import type { Place, Visit } from './visit.ts';

type ConfirmationPage<Subject> = Place & {
  /** What would be changed. Throws where there is nothing. */
  load: (visit: Visit) => Promise<Subject>;
  title: (subject: Subject) => string;
  /** The way back; Cancel leads to its last step. */
  trail: (visit: Visit, subject: Subject) => NonNullable<PageView['trail']>;
  lead?: string;
  /** What is lost. */
  body: (subject: Subject, visit: Visit) => Child;
  button: string;
  query?: readonly string[];
  /** Changes it, and returns where to go. */
  act: (visit: Visit) => Promise<string>;
};

/** A page that asks before something is changed that cannot be undone, and the route of its button, which has the same path. */
export function confirmationPage<Subject>(
  app: PortalApp,
  context: PortalContext,
  page: ConfirmationPage<Subject>,
): void {
  const { path, access, active, query = [], lead = '' } = page;
  viewPage(app, context, {
    path,
    access,
    active,
    query,
    view: async (visit) => {
      const subject = await page.load(visit);
      const trail = page.trail(visit, subject);
      const buttons = html`<div class="buttons"><button class="danger">${page.button}</button><a class="button" href="${trail.at(-1)?.href ?? '/portal'}">Cancel</a></div>`;
      const body = html`<div class="card">${page.body(subject, visit)}
${postForm(visit.viewer, visit.request.url, buttons)}</div>`;
      return { title: page.title(subject), trail, lead, body };
    },
  });
  action(app, context, { path, access, query, act: page.act });
}
