import { Type } from 'typebox';
import { listKeys, revokeKey } from '../../../keys/api-keys.ts';
import { accountObjectId } from '../../external/object-id.ts';
import { EMPTY_FORM } from '../access/form-schema.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, viewerOf } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';
import { postForm } from '../components/form.ts';
import { detailList } from '../components/table.ts';
import { timeAgo } from '../components/time.ts';
import { html } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { KEYS_PATH, keysPath, keyView } from './key-view.ts';

/** Revoking a key, on a page that asks first. */
export function revokeKeyPages(app: PortalApp, { database, now }: PortalContext): void {
  const params = Type.Object({ wabaId: Type.String(), id: Type.String() });
  app.get(`${KEYS_PATH}/:id/revoke`, { config: PAGES.admin, schema: { params } }, async (request, reply) => {
    const { id } = request.params;
    const keys = await listKeys({ database }, wabaOf(request).wabaId);
    const key = keys.find((one) => one.id === id && one.state !== 'revoked');
    if (key === undefined) throw pageNotFound();
    const path = keysPath(request);
    const facts = detailList([
      ['Key', html`<code>${key.prefix}…${key.lastFour}</code>`],
      ['Name', key.name],
      ['Scopes', key.scopes.join(', ')],
      ['Last used', timeAgo(key.lastUsedAt, new Date(now()), 'never')],
    ]);
    const buttons = html`<div class="buttons"><button class="danger">Revoke this key</button><a class="button" href="${path}">Cancel</a></div>`;
    return sendPage(reply, {
      ...keyView(request),
      title: 'Revoke an API key?',
      trail: [{ label: 'API keys', href: path }],
      lead: 'Every further request with this key is refused. You cannot undo this.',
      body: html`<div class="card">${facts}</div>${postForm(viewerOf(request), `${path}/${key.id}/revoke`, buttons)}`,
    });
  });

  const schema = { params, body: EMPTY_FORM };
  app.post(`${KEYS_PATH}/:id/revoke`, { config: PAGES.admin, schema }, async (request, reply) => {
    const tools = { database, actor: actorOf(request) };
    await revokeKey(tools, wabaOf(request).wabaId, accountObjectId(request.params.id));
    return reply.redirect(`${keysPath(request)}?done=revoked`, 303);
  });
}
