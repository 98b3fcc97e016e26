import { mayUse } from '../access/link-access.ts';
import type { Viewer } from '../access/viewer.ts';
import { type Child, html, type Markup, nothing } from '../markup.ts';

/** Whose form it is: the token that it carries, and what a portal link permits. */
type Sender = Pick<Viewer, 'csrfToken'> & { link?: Viewer['link'] };

/** A form that changes something: carries the token that proves it comes from a page of ours. Nothing where it would be refused. */
export function postForm(viewer: Sender, action: string, body: Child): Markup {
  if (!mayUse(viewer.link, 'POST', action)) return nothing;
  return html`<form method="post" action="${action}"><input type="hidden" name="_csrf" value="${viewer.csrfToken}">${body}</form>`;
}

/** A form that is nothing but its button, for actions in lists. */
export function actionButton(
  viewer: Sender,
  action: string,
  label: string,
  kind: 'secondary' | 'danger' | 'primary' = 'secondary',
): Markup {
  if (!mayUse(viewer.link, 'POST', action)) return nothing;
  return html`<form method="post" action="${action}" class="inline"><input type="hidden" name="_csrf" value="${viewer.csrfToken}"><button class="${kind}">${label}</button></form>`;
}

/** What every field has; `error` is about its present value. `id`: where the page has two fields of the name. */
export type FieldView = {
  label: string;
  name: string;
  id?: string;
  hint?: Child;
  error?: string | null;
};

export function textField(
  field: FieldView & {
    value?: string;
    type?: 'text' | 'email' | 'password' | 'url' | 'number' | 'search' | 'datetime-local' | 'date';
    required?: boolean;
    autocomplete?: string;
    placeholder?: string;
    maxLength?: number;
  },
): Markup {
  const {
    name,
    type = 'text',
    value = '',
    autocomplete = type === 'password' ? 'new-password' : 'off',
    placeholder = '',
    maxLength = 2_048,
  } = field;
  const input = html`<input id="${idOf(field)}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}" ${placeholder !== '' && html`placeholder="${placeholder}"`} ${type !== 'number' && type !== 'datetime-local' && type !== 'date' && html`maxlength="${maxLength}"`} ${field.required && html`required`} ${described(field)}>`;
  return wrapped(field, input);
}

/** Several lines of text; browsers neither remember a secret one nor send it to a spelling checker. */
export function textArea(
  field: FieldView & { value?: string; rows?: number; maxLength?: number; isSecret?: boolean },
): Markup {
  const { name, value = '', rows = 4, maxLength = 10_000, isSecret = false } = field;
  return wrapped(
    field,
    html`<textarea id="${idOf(field)}" name="${name}" rows="${rows}" maxlength="${maxLength}" ${isSecret && html`autocomplete="off" spellcheck="false"`} ${described(field)}>${value}</textarea>`,
  );
}

export function selectField(
  field: FieldView & { value?: string; options: readonly { value: string; label: string }[] },
): Markup {
  const options = field.options.map(
    ({ value, label }) =>
      html`<option value="${value}" ${value === field.value && html`selected`}>${label}</option>`,
  );
  return wrapped(
    field,
    html`<select id="${idOf(field)}" name="${field.name}" ${described(field)}>${options}</select>`,
  );
}

type Option = { value: string; label: Child };

/** Any of several; the browser sends the name once for each. */
export function checkboxes(
  field: FieldView & {
    values: readonly string[];
    options: readonly Option[];
    /** In sight only when it is opened, or when one of them is selected. */
    more?: { summary: string; options: readonly Option[] };
  },
): Markup {
  const { name, values, options, more } = field;
  const checkbox = ({ value, label }: Option) =>
    html`<label class="check"><input type="checkbox" name="${name}" value="${value}" ${values.includes(value) && html`checked`}> ${label}</label>`;
  const isOpen = more?.options.some(({ value }) => values.includes(value));
  return html`<fieldset class="field ${field.error && 'wrong'}"><legend>${field.label}</legend>${hintOf(field)}
${options.map(checkbox)}${more && html`<details ${isOpen && html`open`}><summary>${more.summary}</summary>${more.options.map(checkbox)}</details>`}</fieldset>`;
}

export function radios(field: FieldView & { value?: string; options: readonly Option[] }): Markup {
  const { name, options } = field;
  return html`<fieldset class="field ${field.error && 'wrong'}"><legend>${field.label}</legend>${hintOf(field)}
${options.map(
  ({ value, label }) =>
    html`<label class="check"><input type="radio" name="${name}" value="${value}" ${value === field.value && html`checked`} required> ${label}</label>`,
)}</fieldset>`;
}

function wrapped(field: FieldView, control: Markup): Markup {
  return html`<div class="field ${field.error && 'wrong'}"><label for="${idOf(field)}">${field.label}</label>${hintOf(field)}${control}</div>`;
}

function idOf({ id, name }: FieldView): string {
  return id ?? name;
}

function hintOf({ hint, error, ...field }: FieldView): Markup {
  const id = idOf(field);
  return html`${hint && html`<p class="hint" id="${id}-hint">${hint}</p>`}${error && html`<p class="problem" id="${id}-problem">${error}</p>`}`;
}

function described({ hint, error, ...field }: FieldView): Markup {
  const id = idOf(field);
  const ids = [hint && `${id}-hint`, error && `${id}-problem`].filter(Boolean).join(' ');
  return html`${ids && html`aria-describedby="${ids}"`} ${error && html`aria-invalid="true"`}`;
}

export function csrfField({ csrfToken }: Pick<Viewer, 'csrfToken'>): Markup {
  return html`<input type="hidden" name="_csrf" value="${csrfToken}">`;
}
