import { type TProperties, type TSchema, Type } from 'typebox';
import { checkboxes, selectField, textArea, textField } from '../components/form.ts';
import { formLine, formLines } from '../form-values.ts';
import { type Child, html } from '../markup.ts';

export type Option = { value: string; label: string };

/** A field of a form. What depends on the subject of the page is a function of it. */
export type FormField<Name extends string, Subject> = {
  name: Name;
  label: string;
  /** Where the page has two fields of the name. */
  id?: string;
  widget?: 'line' | 'lines' | 'list' | 'ticks' | 'hidden';
  type?: NonNullable<Parameters<typeof textField>[0]['type']>;
  required?: boolean;
  autocomplete?: string;
  placeholder?: string;
  rows?: number;
  maxLength?: number;
  mayBeMissing?: boolean;
  /** It is empty when the form is shown again, such as a confirmation. */
  isTypedAgain?: boolean;
  /** What is longer is refused before anything looks at it. */
  limit?: number;
  hint?: Child | ((subject: Subject) => Child);
  options?: readonly Option[] | ((subject: Subject) => readonly Option[]);
  /** Left out: always. */
  isShown?: (subject: Subject) => boolean;
};

/** The body of the form: texts, as long as any field may be. */
export function bodyOf<Name extends string, Subject>(fields: readonly FormField<Name, Subject>[]) {
  return Type.Object(
    Object.fromEntries(
      fields.map((field): [string, TSchema] => [field.name, schemaOf(field)]),
    ) as TProperties,
  );
}

function schemaOf<Name extends string, Subject>(field: FormField<Name, Subject>): TSchema {
  if (field.widget === 'ticks') return Type.Optional(formLines(20));
  const text = formLine(field.limit ?? (field.widget === 'lines' ? 10_000 : 1_024));
  return field.isShown !== undefined || field.mayBeMissing ? Type.Optional(text) : text;
}

type ShownField<Subject> = { subject: Subject; values: readonly string[]; error: string | null };

export function fieldMarkup<Name extends string, Subject>(
  field: FormField<Name, Subject>,
  { subject, values, error }: ShownField<Subject>,
): Child {
  const { widget, hint, options = [] } = field;
  const shown = {
    ...field,
    value: values[0] ?? '',
    hint: typeof hint === 'function' ? hint(subject) : hint,
    error,
  };
  const choices = typeof options === 'function' ? options(subject) : options;
  if (widget === 'hidden') return html`<input type="hidden" name="${field.name}" value="${shown.value}">`;
  if (widget === 'lines') return textArea(shown);
  if (widget === 'list') return selectField({ ...shown, options: choices });
  if (widget === 'ticks') return checkboxes({ ...shown, values, options: choices });
  return textField(shown);
}
