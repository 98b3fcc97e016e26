import { type InstallationSettings, type Section, textOf } from '../../../engine/endpoint/setting.ts';
import { type AnySetting, type SettingName, settingsOf } from '../../../engine/endpoint/settings.ts';
import type { RequestError } from '../../../platform/request-input.ts';
import type { Viewer } from '../access/viewer.ts';
import { checkboxes, postForm, radios, selectField, textArea, textField } from '../components/form.ts';
import { type Child, html, type Markup, nothing } from '../markup.ts';
import { defaultTexts, type EndpointFormValues } from './endpoint-form-values.ts';

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
