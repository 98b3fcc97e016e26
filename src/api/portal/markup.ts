import { html as template } from 'hono/html';

/** HTML that is safe to put into a page as it is. */
export type Markup = Extract<ReturnType<typeof template>, string>;

/** What a template takes: text is escaped, markup is not, nothing is left out. */
export type Child = string | number | false | null | undefined | Markup | readonly Child[];

/** A piece of a page. Whatever is text in it is escaped, attribute values (always in double quotes) too. */
export function html(strings: TemplateStringsArray, ...values: readonly Child[]): Markup {
  const markup = template(strings, ...values);
  if (markup instanceof Promise) throw new TypeError('a page is made of values, not of promises');
  return markup;
}

export const nothing: Markup = html``;
