import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { ApiKeyDetails } from '../../../keys/api-key-admin.ts';
import { listKeys } from '../../../keys/api-keys.ts';
import { keyRequestsOf, requestKey } from '../../../keys/key-requests.ts';
import { AccountError } from '../../../platform/account-error.ts';
import { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, viewerOf } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';
import { noticeAfter } from '../components/notice.ts';
import { numberedPage, numberedPager } from '../components/numbered-pages.ts';
import { pager } from '../components/pager.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { emptyKeyForm, KeyForm, keyForm, keyRequestOfForm } from './key-form.ts';
import { keyRequestPages } from './key-request-pages.ts';
import { keyTable, requestTable } from './key-tables.ts';
import { KEYS_PATH, keysPath, keyView } from './key-view.ts';
import { revokeKeyPages } from './revoke-key-pages.ts';

const KEYS_PER_PAGE = 50;
const REQUESTS_PER_PAGE = 25;

/** Fields of the form, beside which an error stands; without a key there is none to replace. */
const FIELDS_WITHOUT_KEYS = ['purpose', 'scopes', 'validDays'];
const FIELDS = [...FIELDS_WITHOUT_KEYS, 'replacesKeyId', 'overlapHours'];

const DONE = {
  asked:
    'Your request was sent to the operator. The decision appears here; after an approval you can show the key.',
  withdrawn: 'The request is withdrawn.',
  revoked: 'The key is revoked: the next request with it is refused.',
};

/** /portal/w/:wabaId/keys: the API keys of a WABA; asking for one, revealing it once, revoking it. */
export function keyPages(app: PortalApp, context: PortalContext): void {
  const { database, now } = context;
  const text = Type.Optional(Type.String());
  const querystring = Type.Object({ done: text, page: text, cursor: text });
  app.get(KEYS_PATH, { config: PAGES.member, schema: { querystring } }, async (request, reply) => {
    const { wabaId } = wabaOf(request);
    const path = keysPath(request);
    const [keys, requests] = await Promise.all([
      listKeys({ database }, wabaId),
      requestPart(context, wabaId, path, request.query.cursor),
    ]);
    const canChange = viewerOf(request).role !== 'member';
    const shown = numberedPage(newestFirst(keys), request.query.page, KEYS_PER_PAGE);
    const body = html`${keyTable(shown.rows, { path, canChange, now: new Date(now()) })}${numberedPager(shown, (number) => `${path}?page=${number}`)}
${requests}`;
    return sendPage(reply, {
      ...keyView(request),
      title: 'API keys',
      lead: 'Your systems call the API with these keys. After an operator has approved a request, you can show its key once; later you see only its first and last characters.',
      actions:
        canChange && keys.length > 0 && html`<a class="button primary" href="${path}/new">Request a key</a>`,
      notice: noticeAfter(request.query.done, DONE),
      body,
    });
  });
  newKeyPages(app, context);
  keyRequestPages(app, context);
  revokeKeyPages(app, context);
}

/** The newest requests, or those that a cursor leads to. */
async function requestPart(
  { database, cursors, now }: PortalContext,
  wabaId: string,
  path: string,
  cursor: string | undefined,
): Promise<Markup | false> {
  const [beforeId = null] = (cursor !== undefined && cursors.decode([path], cursor)) || [];
  const found = await keyRequestsOf({ database }, wabaId, { beforeId, limit: REQUESTS_PER_PAGE + 1 });
  const rows = found.slice(0, REQUESTS_PER_PAGE);
  if (rows.length === 0) return false;
  const last = found.length > REQUESTS_PER_PAGE ? rows.at(-1) : undefined;
  const nextHref = last === undefined ? null : `${path}?cursor=${cursors.encode([path], [last.id])}`;
  const firstHref = beforeId === null ? null : path;
  const view = { now: new Date(now()), hrefOf: (id: string) => `${path}/requests/${id}` };
  return html`<h2>Requests</h2>${requestTable('Requests for API keys', rows, view)}${pager({ firstHref, nextHref, label: 'More requests' })}`;
}

function newestFirst(keys: readonly ApiKeyDetails[]): ApiKeyDetails[] {
  const active = keys.filter(({ state }) => state === 'active');
  return [...active.reverse(), ...keys.filter(({ state }) => state !== 'active').reverse()];
}

function newKeyPages(app: PortalApp, { database }: PortalContext): void {
  const show = async (
    request: FastifyRequest,
    reply: FastifyReply,
    { form, error }: { form: KeyForm | null; error: AccountError | null },
    replace = '',
  ) => {
    const keys = await listKeys({ database }, wabaOf(request).wabaId);
    const replaced = keys.find(({ id, state }) => id === replace && state === 'active') ?? null;
    const path = keysPath(request);
    const filled = form ?? emptyKeyForm(replaced);
    const fields = keys.some(({ state }) => state === 'active') ? FIELDS : FIELDS_WITHOUT_KEYS;
    const unplaced = error !== null && !fields.includes(error.param ?? '') ? error.message : null;
    const view = {
      ...keyView(request),
      title: replaced === null ? 'Request an API key' : 'Replace an API key',
      lead: 'An operator approves or denies the request within 7 days. Then you can show the key within 7 days.',
      trail: [{ label: 'API keys', href: path }],
      notice: unplaced === null ? null : { kind: 'error' as const, text: unplaced },
      body: keyForm(viewerOf(request), `${path}/requests`, { form: filled, keys, error }),
    };
    return sendPage(reply, view, error === null ? 200 : 422);
  };

  const querystring = Type.Object({ replace: Type.Optional(Type.String()) });
  app.get(`${KEYS_PATH}/new`, { config: PAGES.admin, schema: { querystring } }, async (request, reply) =>
    show(request, reply, { form: null, error: null }, request.query.replace),
  );
  app.post(
    `${KEYS_PATH}/requests`,
    { config: PAGES.admin, schema: { body: KeyForm } },
    async (request, reply) => {
      const { userId, email } = viewerOf(request);
      const tools = { database, actor: actorOf(request) };
      const requester = { id: userId, name: email };
      try {
        await requestKey(tools, wabaOf(request).wabaId, requester, keyRequestOfForm(request.body));
      } catch (error) {
        if (!(error instanceof AccountError)) throw error;
        return await show(request, reply, { form: request.body, error });
      }
      return reply.redirect(`${keysPath(request)}?done=asked`, 303);
    },
  );
}
