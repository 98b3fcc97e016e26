import { checkEndpointUrl } from '../../../platform/http/outbound-url.ts';
import { PAGES } from '../access/page-access.ts';
import { formValues } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

/** GET /portal/w/:wabaId/endpoints/check-url?url=…: the piece of the form that says whether a URL would be taken. */
export function urlCheckFragment(app: PortalApp, context: PortalContext): void {
  app.get('/portal/w/:wabaId/endpoints/check-url', { config: PAGES.admin }, async (request, reply) => {
    const checked = await urlVerdict(context, formValues(request.query).text('url').trim());
    return reply.type('text/html; charset=utf-8').send(checked.toString());
  });
}

/** The same check that saving makes: the text, and where the name leads. Nothing is sent to it. */
export async function urlVerdict({ accounts }: PortalContext, url: string): Promise<Markup> {
  const verdict = await checkEndpointUrl(url, accounts.urlRules);
  if (!verdict.ok) return html`<p class="check-bad"><span aria-hidden="true">✕</span> ${verdict.message}</p>`;
  const other = verdict.url === url ? null : html` It is stored as <code>${verdict.url}</code>.`;
  return html`<p class="check-good"><span aria-hidden="true">✓</span> This URL can be used.${other}</p>`;
}
