import { membersOf, textOf } from '../../../platform/json/json-members.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { findTemplate } from '../../accounts/templates.ts';
import { type TemplateProblem, templateProblem } from './check-template.ts';
import { typeOf } from './upstream-payload.ts';

/** What is known of the template of a message: a template that is not known is for upstream to judge. */
export async function lookAtTemplate(
  database: Database,
  wabaId: string,
  message: Readonly<Record<string, unknown>>,
  find = findTemplate,
): Promise<{ problem: TemplateProblem | null; category?: string }> {
  if (typeOf(message) !== 'template') return { problem: null };
  const template = await find(database, wabaId, namedTemplate(message.template));
  if (template === null) return { problem: null };
  const { category } = template;
  return { problem: templateProblem(template, message.template), ...(category !== null && { category }) };
}

/** The template that the content of a message names. */
export function namedTemplate(content: unknown): { name: string; language: string } {
  const { name, language } = membersOf(content);
  return { name: textOf(name), language: textOf(membersOf(language).code) };
}
