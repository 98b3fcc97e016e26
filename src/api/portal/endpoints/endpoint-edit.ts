import { installationSettings } from '../../../engine/endpoint/setting.ts';
import { listPhoneNumbers } from '../../../features/accounts/accounts.ts';
import type { EndpointMove } from '../../../features/endpoints/endpoint-headers.ts';
import {
  addEndpoint,
  type EndpointStatus,
  endpointStatus,
  sameUrlNotice,
  updateEndpoint,
} from '../../../features/endpoints/endpoints.ts';
import { checkWabaUrl } from '../../../features/endpoints/url-check.ts';
import { RateLimitError, RequestError } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import { wabaOf } from '../access/viewer.ts';
import { formLine, formOf, formValues } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { type Next, viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup, nothing } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { endpointForm } from './endpoint-form.ts';
import {
  ENDPOINT_FIELDS,
  type EndpointFormValues,
  NEW_ENDPOINT,
  optionsOf,
  readEndpointForm,
  valuesOf,
} from './endpoint-form-values.ts';
import { SETTINGS_TITLE } from './endpoint-shell.ts';
import { secretView } from './secret-page.ts';

type Shown = {
  /** Null: a new one. */
  endpoint: EndpointStatus | null;
  values: EndpointFormValues;
  error?: RequestError | null;
  urlCheck?: Child;
};

const LIST = '/portal/w/:wabaId/endpoints';
const PLACE = { access: PAGES.admin, active: 'endpoints' };

/** /portal/w/:wabaId/endpoints/new: the secret is on the page that follows the form, and nowhere else. */
export function endpointCreatePages(app: PortalApp, context: PortalContext): void {
  viewPage(app, context, {
    ...PLACE,
    path: `${LIST}/new`,
    view: (visit) => formView(visit, { endpoint: null, values: NEW_ENDPOINT }),
  });
  formRoute(app, context, {
    path: LIST,
    load: async () => null,
    save: async (visit, values) => {
      const created = await addEndpoint(visit.tools, visit.waba.wabaId, optionsOf(values));
      return secretView(visit, {
        title: 'The endpoint is added',
        secret: created.secret,
        appSecret: created.appSecret,
        signatures: created,
        next: { label: 'Go to the endpoint', href: `${visit.path}/${created.id}` },
        overlap: sameUrlNotice(created),
      });
    },
  });
}

export function endpointEditPages(app: PortalApp, context: PortalContext): void {
  const path = `${LIST}/:id/edit`;
  const load = async ({ waba, id }: Visit) => await endpointStatus(context.accounts, waba.wabaId, id);
  viewPage(app, context, {
    ...PLACE,
    path,
    view: async (visit) => {
      const endpoint = await load(visit);
      return await formView(visit, { endpoint, values: valuesOf(endpoint) });
    },
  });
  formRoute(app, context, {
    path,
    load,
    save: async (visit, values) => {
      const move = await updateEndpoint(visit.tools, visit.waba.wabaId, visit.id, optionsOf(values));
      const href = `${visit.at(LIST)}/${visit.id}?done=${doneCode(move)}`;
      return move.appSecret === null
        ? href
        : secretView(visit, {
            title: 'The endpoint is saved',
            secret: null,
            appSecret: move.appSecret,
            signatures: move,
            next: { label: 'Go to the endpoint', href },
          });
    },
  });
}

function doneCode({ droppedHeaderNames, secretRotationAdvised }: EndpointMove): string {
  if (!secretRotationAdvised) return 'saved';
  return droppedHeaderNames.length === 0 ? 'moved' : 'moved-without-headers';
}

type FormRoute = {
  path: string;
  load: (visit: Visit) => Promise<EndpointStatus | null>;
  save: (visit: Visit, values: EndpointFormValues) => Promise<Next>;
};

/** Saves, or shows the form again with what was written: for the check of the URL alone, or with what is wrong. */
function formRoute(app: PortalApp, context: PortalContext, { path, load, save }: FormRoute): void {
  action(app, context, {
    ...PLACE,
    path,
    fields: ENDPOINT_FIELDS,
    act: async (visit, given) => {
      const endpoint = await load(visit);
      const values = readEndpointForm(given);
      if (given.text('check') === '') return await save(visit, values);
      const urlCheck = await urlVerdict(context, visit.waba.wabaId, values.url);
      return await formView(visit, { endpoint, values, urlCheck });
    },
    refused: async (visit, error, given) =>
      await formView(visit, { endpoint: await load(visit), values: readEndpointForm(given), error }),
  });
}

async function formView(
  visit: Visit,
  { endpoint, values, error = null, urlCheck = nothing }: Shown,
): Promise<PageView> {
  const { accounts, config } = visit.context;
  const list = visit.at(LIST);
  const own = endpoint === null ? null : `${list}/${endpoint.id}`;
  const form = endpointForm({
    viewer: visit.viewer,
    action: own === null ? list : `${own}/edit`,
    label: own === null ? 'Add endpoint' : 'Save',
    cancelHref: own ?? list,
    checkHref: `${list}/check-url`,
    values,
    phoneNumbers: await listPhoneNumbers(accounts.database, visit.waba.wabaId),
    headerNames: endpoint === null ? [] : endpoint.customHeaderNames,
    defaults: installationSettings(config),
    isDevelopment: config.mode === 'development',
    error,
    urlCheck,
  });
  const ofEndpoint = own === null ? [] : [{ label: `Endpoint ${endpoint?.id}`, href: own }];
  const text = error?.param ? 'Nothing was saved: see the field below.' : error?.message;
  return {
    title: endpoint === null ? 'Add endpoint' : 'Edit endpoint',
    trail: [{ label: SETTINGS_TITLE, href: list }, ...ofEndpoint],
    assets: ['webhooks.css', 'webhooks.js'],
    notice: text === undefined ? null : { kind: 'error', text },
    body: form,
    error,
  };
}

/** The piece of the form that says whether a URL would be taken. */
export function urlCheckFragment(app: PortalApp, context: PortalContext): void {
  const schema = { querystring: formOf({ url: formLine(4_096) }) };
  app.get(`${LIST}/check-url`, { config: PAGES.admin, schema }, async (request, reply) => {
    const url = formValues(request.query).text('url').trim();
    const checked = await urlVerdict(context, wabaOf(request).wabaId, url);
    return reply.type('text/html; charset=utf-8').send(checked.toString());
  });
}

/** The same check that saving makes: the text, and where the name leads. Nothing is sent to it. */
async function urlVerdict({ accounts }: PortalContext, wabaId: string, url: string): Promise<Markup> {
  try {
    const stored = await checkWabaUrl(accounts, wabaId, url, { unresolved: 'refuse' });
    const other = stored === url ? null : html` It is stored as <code>${stored}</code>.`;
    return html`<p class="check-good"><span aria-hidden="true">✓</span> This URL can be used.${other}</p>`;
  } catch (error) {
    if (!(error instanceof RequestError) || error instanceof RateLimitError) throw error;
    return html`<p class="check-bad"><span aria-hidden="true">✕</span> ${error.message}</p>`;
  }
}
