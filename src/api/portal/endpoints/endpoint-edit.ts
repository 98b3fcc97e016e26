import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { listPhoneNumbers } from '../../../accounts/accounts.ts';
import type { EndpointMove } from '../../../endpoints/endpoint-headers.ts';
import {
  addEndpoint,
  type EndpointStatus,
  endpointStatus,
  sameUrlNotice,
  updateEndpoint,
} from '../../../endpoints/endpoints.ts';
import {
  type InstallationSettings,
  installationSettings,
  type Section,
  textOf,
} from '../../../endpoints/setting.ts';
import { type AnySetting, type SettingName, settingsOf } from '../../../endpoints/settings.ts';
import { checkWabaUrl } from '../../../endpoints/url-check.ts';
import { RateLimitError, RequestError } from '../../../platform/request-input.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { type Viewer, viewerOf, wabaOf } from '../access/viewer.ts';
import { checkboxes, postForm, radios, selectField, textArea, textField } from '../components/form.ts';
import { formLine, formOf, formValues } from '../form-values.ts';
import { type Child, html, type Markup, nothing } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import {
  defaultTexts,
  EndpointForm,
  type EndpointFormValues,
  NEW_ENDPOINT,
  optionsOf,
  readEndpointForm,
  valuesOf,
} from './endpoint-form-values.ts';
import { endpointPath, endpointsPath, toolsOf } from './endpoint-status.ts';
import { sendSecretPage } from './secret-page.ts';

type Shown = {
  /** Null: a new one. */
  endpoint: EndpointStatus | null;
  values: EndpointFormValues;
  error?: RequestError | null;
  urlCheck?: Child;
};

/** /portal/w/:wabaId/endpoints/new: the secret is on the page that follows the form, and nowhere else. */
export function endpointCreatePages(app: PortalApp, context: PortalContext): void {
  app.get('/portal/w/:wabaId/endpoints/new', { config: PAGES.admin }, async (request, reply) =>
    sendForm(request, reply, context, { endpoint: null, values: NEW_ENDPOINT }),
  );
  app.post(
    '/portal/w/:wabaId/endpoints',
    { config: PAGES.admin, schema: { body: EndpointForm } },
    async (request, reply) => {
      const values = readEndpointForm(formValues(request.body));
      return await submitted(request, reply, context, { endpoint: null, values }, async () => {
        const { wabaId } = wabaOf(request);
        const created = await addEndpoint(toolsOf(request, context), wabaId, optionsOf(values));
        return sendSecretPage(request, reply, {
          title: 'The endpoint is added',
          secret: created.secret,
          appSecret: created.appSecret,
          signatures: created,
          next: { label: 'Go to the endpoint', href: endpointPath(wabaId, created.id) },
          overlap: sameUrlNotice(created),
        });
      });
    },
  );
}

const OF_ENDPOINT = Type.Object({ wabaId: Type.String(), id: Type.String() });

export function endpointEditPages(app: PortalApp, context: PortalContext): void {
  const path = '/portal/w/:wabaId/endpoints/:id/edit';
  const options = { config: PAGES.admin, schema: { params: OF_ENDPOINT } };
  const known = async (request: FastifyRequest, id: string) =>
    await endpointStatus(context.accounts, wabaOf(request).wabaId, accountObjectId(id));
  app.get(path, options, async (request, reply) => {
    const endpoint = await known(request, request.params.id);
    return await sendForm(request, reply, context, { endpoint, values: valuesOf(endpoint) });
  });
  const schema = { params: OF_ENDPOINT, body: EndpointForm };
  app.post(path, { config: PAGES.admin, schema }, async (request, reply) => {
    const endpoint = await known(request, request.params.id);
    const values = readEndpointForm(formValues(request.body));
    return await submitted(request, reply, context, { endpoint, values }, async () => {
      const { wabaId } = wabaOf(request);
      const move = await updateEndpoint(toolsOf(request, context), wabaId, endpoint.id, optionsOf(values));
      const href = `${endpointPath(wabaId, endpoint.id)}?done=${doneCode(move)}`;
      return move.appSecret === null
        ? reply.redirect(href, 303)
        : sendSecretPage(request, reply, {
            ...{ title: 'The endpoint is saved', secret: null, appSecret: move.appSecret },
            signatures: move,
            next: { label: 'Go to the endpoint', href },
          });
    });
  });
}

function doneCode({ droppedHeaderNames, secretRotationAdvised }: EndpointMove): string {
  if (!secretRotationAdvised) return 'saved';
  return droppedHeaderNames.length === 0 ? 'moved' : 'moved-without-headers';
}

/** Saves, or shows the form again with what was written: for the check of the URL alone, or with what is wrong. */
async function submitted(
  request: FastifyRequest,
  reply: FastifyReply,
  context: PortalContext,
  shown: Shown,
  save: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  if (formValues(request.body).text('check') !== '') {
    const urlCheck = await urlVerdict(context, wabaOf(request).wabaId, shown.values.url);
    return await sendForm(request, reply, context, { ...shown, urlCheck });
  }
  return await orShown(save, (error) => sendForm(request, reply, context, { ...shown, error }));
}

async function sendForm(
  request: FastifyRequest,
  reply: FastifyReply,
  { accounts, config }: PortalContext,
  { endpoint, values, error = null, urlCheck = nothing }: Shown,
): Promise<FastifyReply> {
  const waba = wabaOf(request);
  const viewer = viewerOf(request);
  const list = endpointsPath(waba.wabaId);
  const own = endpoint === null ? null : endpointPath(waba.wabaId, endpoint.id);
  const form = endpointForm({
    viewer,
    action: own === null ? list : `${own}/edit`,
    label: own === null ? 'Add endpoint' : 'Save',
    cancelHref: own ?? list,
    checkHref: `${list}/check-url`,
    values,
    phoneNumbers: await listPhoneNumbers(accounts.database, waba.wabaId),
    headerNames: endpoint === null ? [] : endpoint.customHeaderNames,
    defaults: installationSettings(config),
    error,
    urlCheck,
  });
  const trail = [{ label: 'Webhook endpoints', href: list }];
  if (own !== null && endpoint !== null) trail.push({ label: `Endpoint ${endpoint.id}`, href: own });
  const view = {
    title: endpoint === null ? 'Add endpoint' : 'Edit endpoint',
    trail,
    active: 'endpoints',
    assets: ['webhooks.css', 'webhooks.js'],
    notice:
      error === null
        ? null
        : {
            kind: 'error' as const,
            text: error.param === null ? error.message : 'Nothing was saved: see the field below.',
          },
    ...{ body: form, error },
  };
  return sendPage(reply, view);
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
  /** What the check of the URL says, when it was asked for. */
  urlCheck: Child;
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
<details class="card" ${isAdvanced(view) && html`open`}><summary>Ordering, signature, retries, limits and headers</summary>
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
    hint: 'An https URL that is reachable from the internet.',
    error: problem(view, 'url'),
  })}${(view.headerNames?.length ?? 0) > 0 && html`<p class="hint"><strong>Custom headers are for this server only.</strong> If you change host, port or scheme, they are removed unless you enter them again below.</p>`}<div class="url-check" id="url-check" aria-live="polite">${urlCheck}</div>
<button name="check" value="1" class="check-button" formnovalidate>Check the URL</button></div>
${fieldsOf(view, 'where')}`;
}

function whatFields(view: EndpointFormView): Markup {
  return html`<div class="columns">${fieldsOf(view, 'what')}${upstreamFields(view)}</div>`;
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
      hint: 'For the format WhatsApp Cloud API: signs X-Hub-Signature-256. Empty: the present one stays, or one is made.',
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

/** GET /portal/w/:wabaId/endpoints/check-url?url=…: the piece of the form that says whether a URL would be taken. */
export function urlCheckFragment(app: PortalApp, context: PortalContext): void {
  const schema = { querystring: formOf({ url: formLine(4_096) }) };
  app.get(
    '/portal/w/:wabaId/endpoints/check-url',
    { config: PAGES.admin, schema },
    async (request, reply) => {
      const { wabaId } = wabaOf(request);
      const checked = await urlVerdict(context, wabaId, formValues(request.query).text('url').trim());
      return reply.type('text/html; charset=utf-8').send(checked.toString());
    },
  );
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
