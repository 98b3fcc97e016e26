import { type TProperties, Type } from 'typebox';

/** The values of a form. The texts are unchecked. */
export type FormValues = {
  /** The text of a field; '' when it is missing. The first of several. */
  text(name: string): string;
  /** Every value of a field that can be there more than once. */
  list(name: string): string[];
};

export function formValues(body: unknown): FormValues {
  const list = (name: string): string[] => {
    if (typeof body !== 'object' || body === null || !Object.hasOwn(body, name)) return [];
    const value: unknown = (body as Record<string, unknown>)[name];
    return (Array.isArray(value) ? value : [value]).filter((one) => typeof one === 'string');
  };
  return { text: (name) => list(name)[0] ?? '', list };
}

/** A `datetime-local` value as ISO 8601 in UTC; undefined: it is empty. Unchecked. */
export function utcTime(text: string): string | undefined {
  if (text === '') return undefined;
  return `${text}${text.length === 16 ? ':00' : ''}Z`;
}

/** A line of a form; what is too long for any field is refused before anything looks at it. */
export const formLine = (maxLength = 1_024) => Type.String({ maxLength });

/** A field that is there once for each value, or not at all. */
export const formLines = (maxItems: number) => Type.Union([formLine(), Type.Array(formLine(), { maxItems })]);

/** A form that has these fields, all of which may be missing, and no others. */
export const formOf = (fields: TProperties) =>
  Type.Partial(Type.Object(fields), { additionalProperties: false });

/** The entries of a list that was written one to a line, or with commas. */
export function linesOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((part) => part !== '');
}
