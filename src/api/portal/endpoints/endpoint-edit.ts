import {
  type InstallationSettings,
  installationSettings,
  type Section,
  textOf,
} from '../../../engine/endpoint/setting.ts';
import { type AnySetting, type SettingName, settingsOf } from '../../../engine/endpoint/settings.ts';
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
import { type Viewer, wabaOf } from '../access/viewer.ts';
import { checkboxes, postForm, radios, selectField, textArea, textField } from '../components/form.ts';
import { formLine, formOf, formValues } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { type Next, viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup, nothing } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import {
  defaultTexts,
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

type EndpointFormView = {
  viewer: Viewer;
  action: string;
  label: string;
  cancelHref: string;
  checkHref: string;
  values: EndpointFormValues;
  phoneNumbers: readonly { phoneNumberId: string; displayPhoneNumber: string }[];
  /** Of headers that are stored; their values are not shown. Null: they cannot be read. */
  headerNames: readonly string[] | null;
  defaults: InstallationSettings;
  error: RequestError | null;
  urlCheck: Child;
  /** Addresses of this machine can be used too. */
  isDevelopment?: boolean;
};

/** Folded away while all of it is left to the defaults. */
const ADVANCED = settingsOf('order', 'signature', 'retries', 'limits');

export function endpointForm(view: EndpointFormView): Markup {
  return postForm(
    view.viewer,
    view.action,
    // Enter presses the first button of a form: without this one it would check the address.
    html`<button class="unseen" tabindex="-1" aria-hidden="true">${view.label}</button>
<div class="card">${whereFields(view)}</div>
<div class="card"><h2>Events to receive</h2>${whatFields(view)}</div>
<details class="card" ${isAdvanced(view) && html`open`}><summary>Ordering, buffering, signature, retries, limits and headers</summary>
<div class="advanced">${howFields(view)}${headerFields(view)}</div></details>
<div class="buttons"><button class="primary">${view.label}</button><a class="button" href="${view.cancelHref}">Cancel</a></div>`,
  );
}

/** What was not left to the defaults must be in sight, and so must what is wrong. */
function isAdvanced({ values, error, headerNames }: EndpointFormView): boolean {
  const isChanged = ([name, setting]: [SettingName, AnySetting]) =>
    (values.settings[name][0] ?? '') !== (defaultTexts(setting)[0] ?? '');
  const isWrong = ['customHeaders', ...ADVANCED.map(([name]) => name)].includes(error?.param ?? '');
  const hasHeaders = (headerNames ?? []).length > 0 || values.newHeaders !== '';
  return isWrong || hasHeaders || ADVANCED.some(isChanged);
}

function problem({ error }: EndpointFormView, param: string): string | null {
  return error !== null && error.param === param ? error.message : null;
}

function whereFields(view: EndpointFormView): Markup {
  const { values, checkHref, urlCheck } = view;
  return html`<div class="url-field" data-check-url="${checkHref}">${textField({
    label: 'URL',
    name: 'url',
    type: 'url',
    value: values.url,
    required: true,
    placeholder: 'https://example.com/webhooks',
    hint: view.isDevelopment
      ? 'An http or https URL that this machine can reach, such as http://127.0.0.1:3000/webhooks.'
      : 'An https URL that is reachable from the internet.',
    error: problem(view, 'url'),
  })}${(view.headerNames?.length ?? 0) > 0 && html`<p class="hint"><strong>Custom headers are for this server only.</strong> If you change host, port or scheme, they are removed unless you enter them again below.</p>`}<div class="url-check" id="url-check" aria-live="polite">${urlCheck}</div>
<button name="check" value="1" class="check-button" formnovalidate>Check the URL</button></div>
${fieldsOf(view, 'where')}`;
}

function whatFields(view: EndpointFormView): Markup {
  return html`<div class="columns">${fieldsOf(view, 'what')}<div class="meta-only">${upstreamFields(view)}</div></div>`;
}

/** What a Meta app has, for the format that imitates its webhooks. Neither is shown again. */
function upstreamFields(view: EndpointFormView): Child {
  const { appSecret, verifyToken } = view.values;
  return [
    textField({
      label: 'App secret',
      name: 'appSecret',
      value: appSecret,
      autocomplete: 'off',
      hint: 'For the format WhatsApp Cloud API: signs X-Hub-Signature-256, at least 16 characters. Empty: the present one stays, or one is made.',
      error: problem(view, 'appSecret'),
    }),
    textField({
      label: 'Verify token',
      name: 'verifyToken',
      value: verifyToken,
      autocomplete: 'off',
      hint: 'For the format WhatsApp Cloud API: the server must prove on saving that it knows this token. Empty: no check.',
      error: problem(view, 'verifyToken'),
    }),
  ];
}

function howFields(view: EndpointFormView): Markup {
  return html`${fieldsOf(view, 'order')}
<div class="columns">
${fieldsOf(view, 'signature', 'retries', 'limits')}
</div>`;
}

function fieldsOf(view: EndpointFormView, ...sections: Section[]): Child {
  return settingsOf(...sections).map(([name, setting]) => settingField(view, name, setting));
}

function settingField(view: EndpointFormView, name: SettingName, { portal, fallback }: AnySetting): Child {
  const texts = view.values.settings[name];
  const [value = ''] = texts;
  const { label, unit, hint, maxLength, choices } = portal;
  const field = {
    label: unit === undefined ? label : `${label} (${unit})`,
    name: portal.field,
    ...(hint !== undefined && { hint: textOf(hint, view.defaults) }),
    error: problem(view, name),
  };
  const byDefault = fallback === null ? [{ value: '', label: defaultLabel(portal, view.defaults) }] : [];
  const options = Object.entries(choices ?? {}).map(([name, label]) => ({ value: name, label }));
  switch (portal.widget) {
    case 'line':
      return textField({ ...field, value, ...(maxLength !== undefined && { maxLength }) });
    case 'lines':
      return textArea({ ...field, value, rows: 3, maxLength: 16_384 });
    case 'radios':
      return radios({ ...field, value, options });
    case 'list':
      return selectField({ ...field, value, options: [...byDefault, ...options] });
    case 'ticks': {
      const ticks = choices === undefined ? numbersOf(view) : options.map(asCode);
      const more = portal.more && {
        ...portal.more,
        options: furtherOptions(portal.more.choices, choices, texts),
      };
      return (
        ticks.length > 0 && checkboxes({ ...field, values: texts, options: ticks, ...(more && { more }) })
      );
    }
  }
}

/** With what was chosen by API or command and has no name here, so that saving the form keeps it. */
function furtherOptions(
  more: Readonly<Record<string, string>>,
  choices: Readonly<Record<string, string>> = {},
  chosen: readonly string[],
) {
  const unknown = chosen.filter((value) => !Object.hasOwn(more, value) && !Object.hasOwn(choices, value));
  const named = [...Object.entries(more), ...unknown.map((value) => [value, value] as const)];
  return named.map(([value, label]) => asCode({ value, label }));
}

function defaultLabel({ byDefault }: AnySetting['portal'], defaults: InstallationSettings): string {
  return `Default: ${textOf(byDefault, defaults)}`;
}

function asCode({ value, label }: { value: string; label: string }) {
  return { value, label: html`<code>${label}</code>` };
}

function numbersOf({ phoneNumbers }: EndpointFormView) {
  return phoneNumbers.map(({ phoneNumberId, displayPhoneNumber }) => ({
    value: phoneNumberId,
    label: html`${displayPhoneNumber} <span class="mono faint">${phoneNumberId}</span>`,
  }));
}

function headerFields(view: EndpointFormView): Markup {
  const { values, headerNames } = view;
  const stored =
    headerNames === null
      ? html`<p class="problem">The stored headers cannot be read: the key that they were encrypted with is missing.</p>`
      : headerNames.length === 0
        ? nothing
        : checkboxes({
            label: 'Remove headers',
            name: 'removedHeaders',
            hint: 'Values are not shown. Headers that are not selected stay.',
            values: values.removedHeaders,
            options: headerNames.map((name) => ({ value: name, label: html`<code>${name}</code>` })),
          });
  return html`${stored}${textArea({
    label: 'Custom headers',
    name: 'newHeaders',
    rows: 3,
    value: values.newHeaders,
    hint: 'Sent with each webhook, one “Name: value” to a line. Stored encrypted and never shown again.',
    error: problem(view, 'customHeaders'),
  })}`;
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
