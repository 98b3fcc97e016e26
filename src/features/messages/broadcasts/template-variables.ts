import { listOf, type Members, membersOf, textOf } from '../../../platform/json/json-members.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import type { MessageTemplate } from '../../accounts/templates.ts';
import { variablesIn } from '../send/check-template.ts';

/** Something that a template leaves open; `parameter`: as a message has it, with its value. */
export type TemplateVariable = {
  part: 'header' | 'body' | 'button';
  label: string;
  /** Of buttons: which, and of which kind. */
  button?: { sub_type: string; index: string };
  parameter: (value: string) => Members;
};

const FILES: Readonly<Record<string, string>> = { IMAGE: 'image', VIDEO: 'video', DOCUMENT: 'document' };

/** What of a template a form can fill in, in its order; none where it is not known. Of other parts, such as carousels, the API alone takes values. */
export function templateVariables(template: Pick<MessageTemplate, 'content'>): TemplateVariable[] {
  if (template.content === null) return [];
  const listed = membersOf(JSON.parse(template.content));
  const isNamed = listed.parameter_format === 'NAMED';
  const components = listOf(listed.components);
  const of = (type: string) => components.filter((one) => textOf(one.type).toUpperCase() === type);
  return [
    ...of('HEADER').flatMap((header) => headerVariables(header, isNamed)),
    ...of('BODY').flatMap((body) => textVariables('body', body, isNamed)),
    ...of('BUTTONS').flatMap((buttons) => listOf(buttons.buttons).flatMap(buttonVariables)),
  ];
}

/** The text that customers read, with its variables; null where it is not known. */
export function templateText({ content }: Pick<MessageTemplate, 'content'>): string | null {
  if (content === null) return null;
  const components = listOf(membersOf(JSON.parse(content)).components);
  const body = components.find(({ type }) => textOf(type).toUpperCase() === 'BODY');
  return body === undefined ? null : textOf(body.text);
}

function headerVariables(header: Members, isNamed: boolean): TemplateVariable[] {
  const format = textOf(header.format).toUpperCase();
  if (format === 'TEXT') return textVariables('header', header, isNamed);
  const kind = FILES[format];
  if (kind === undefined) return [];
  const parameter = (link: string) => ({ type: kind, [kind]: { link } });
  return [{ part: 'header', label: `header: the https link of its ${kind}`, parameter }];
}

function textVariables(part: 'header' | 'body', { text }: Members, isNamed: boolean): TemplateVariable[] {
  return variablesIn(textOf(text)).map((name) => ({
    part,
    label: `${part}: {{${name}}}`,
    parameter: (value) => ({ type: 'text', ...(isNamed && { parameter_name: name }), text: value }),
  }));
}

function buttonVariables({ type, url, text }: Members, at: number): TemplateVariable[] {
  const label = `button “${textOf(text)}”`;
  const index = String(at);
  if (type === 'URL' && variablesIn(textOf(url)).length > 0) {
    const parameter = (value: string) => ({ type: 'text', text: value });
    const button = { sub_type: 'url', index };
    return [{ part: 'button', label: `${label}: the end of its link`, button, parameter }];
  }
  if (type !== 'COPY_CODE') return [];
  const parameter = (code: string) => ({ type: 'coupon_code', coupon_code: code });
  return [
    { part: 'button', label: `${label}: its code`, button: { sub_type: 'copy_code', index }, parameter },
  ];
}

/**
 * The components of a message with these values, one for each variable; those of the body may be left empty where each recipient has its own. Throws
 * RequestError `invalid_value`.
 */
export function componentsWith(variables: readonly TemplateVariable[], values: readonly string[]): Members[] {
  if (values.length > variables.length) {
    throw invalidValue(
      `There are ${values.length} values, and the template has ${variables.length} variables.`,
      'values',
    );
  }
  const filled = variables.map((variable, at) => ({ variable, value: values[at] ?? '' }));
  const body = filled.filter(({ variable }) => variable.part === 'body');
  const isOwn = body.every(({ value }) => value === '');
  const empty = filled.find(({ variable, value }) => value === '' && !(isOwn && variable.part === 'body'));
  if (empty !== undefined) throw invalidValue(`There is no value for the ${empty.variable.label}.`, 'values');
  const given = filled.filter(({ value }) => value !== '');
  const partOf = (part: 'header' | 'body') => {
    const own = given.filter(({ variable }) => variable.part === part);
    const parameters = own.map(({ variable, value }) => variable.parameter(value));
    return parameters.length === 0 ? [] : [{ type: part, parameters }];
  };
  const buttons = given.flatMap(({ variable: { button, parameter }, value }) =>
    button === undefined ? [] : [{ type: 'button', ...button, parameters: [parameter(value)] }],
  );
  return [...partOf('header'), ...partOf('body'), ...buttons];
}
