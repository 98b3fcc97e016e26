import { Type } from 'typebox';
import { setNumberPace } from '../../../accounts/number-pace.ts';
import { listNumberPaces } from '../../../accounts/number-pace-store.ts';
import { AccountError } from '../../../platform/account-error.ts';
import { formLine } from '../access/form-schema.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { actorOf, type Viewer } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';
import { postForm, selectField, textField } from '../components/form.ts';
import { html, type Markup, nothing } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

/** POST /portal/operator/wabas/:wabaId/pace: how fast the messages of a number leave; empty goes back to the setting. */
export function numberPaceAction(app: PortalApp, { database }: PortalContext): void {
  const body = Type.Object({ phoneNumberId: formLine(), messagesPerSecond: formLine() });
  const options = { config: PAGES.operator, schema: { body } };
  app.post('/portal/operator/wabas/:wabaId/pace', options, async (request, reply) => {
    const { wabaId } = wabaOf(request);
    const given = request.body.messagesPerSecond.trim();
    const messagesPerSecond = given === '' ? null : /^\d{1,6}$/.test(given) ? Number(given) : Number.NaN;
    const change = { phoneNumberId: request.body.phoneNumberId.trim(), messagesPerSecond };
    const done = await setNumberPace({ database, actor: actorOf(request) }, wabaId, change).then(
      () => 'pace',
      (error: unknown) => {
        if (!(error instanceof AccountError)) throw error;
        if (error.code === 'unknown_phone_number') throw pageNotFound();
        return 'no-pace';
      },
    );
    return reply.redirect(`/portal/operator/wabas/${wabaId}?done=${done}`, 303);
  });
}

/** The paces of a WABA's numbers and the form that sets one; nothing without numbers. */
export async function numberPaceSection(
  { database, config }: PortalContext,
  viewer: Viewer,
  wabaId: string,
): Promise<Markup> {
  const numbers = await listNumberPaces(database, wabaId);
  if (numbers.length === 0) return nothing;
  const usual = config.sending.messagesPerSecond;
  const options = numbers.map(({ phoneNumberId, displayPhoneNumber, messagesPerSecond }) => ({
    value: phoneNumberId,
    label: `${displayPhoneNumber} (${phoneNumberId}): ${messagesPerSecond ?? `${usual}, the setting`}`,
  }));
  return html`<section class="card"><h2>Sending rate</h2>${postForm(
    viewer,
    `/portal/operator/wabas/${encodeURIComponent(wabaId)}/pace`,
    html`${selectField({ label: 'Number', name: 'phoneNumberId', options })}
${textField({ label: 'Messages per second', name: 'messagesPerSecond', maxLength: 6, hint: `From 1 to 1,000. Upstream allows 20 for a number that is also used in its app, 80 for most, 1,000 for some. Empty: ${usual}, the setting of the installation.` })}
<div class="buttons"><button>Set the rate</button></div>`,
  )}</section>`;
}
