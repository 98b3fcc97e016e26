import { isMembers, type Members, membersOf, textOf } from '../../../platform/json/json-members.ts';
import type { MessageTemplate } from '../../accounts/templates.ts';

export type TemplateProblem = {
  code: 'template_paused' | 'template_disabled' | 'template_variables_wrong';
  param: string;
  message: string;
};

const STOPPED = { PAUSED: 'template_paused', DISABLED: 'template_disabled' } as const;

/** Why upstream would refuse a message with this template; null: it may take it. */
export function templateProblem(template: MessageTemplate, content: unknown): TemplateProblem | null {
  const { name, language, status, rejectedReason } = template;
  const named = `The template ${name} (${language})`;
  if (status === 'PAUSED' || status === 'DISABLED') {
    const because = rejectedReason === null ? '' : `: ${rejectedReason}`;
    return {
      code: STOPPED[status],
      param: 'template/name',
      message: `${named} is ${status.toLowerCase()} by upstream${because}.`,
    };
  }
  const listed = template.content === null ? null : membersOf(JSON.parse(template.content));
  if (listed === null) return null;
  const given = listOf(membersOf(content).components);
  const isNamed = listed.parameter_format === 'NAMED';
  for (const component of listOf(listed.components)) {
    const kind = textOf(component.type).toLowerCase();
    const wrong = variablesProblem(component, kind, given, isNamed);
    if (wrong === null) continue;
    return {
      code: 'template_variables_wrong',
      param: 'template/components',
      message: `${named}: ${wrong}`,
    };
  }
  return null;
}

function listOf(value: unknown): Members[] {
  return Array.isArray(value) ? value.filter(isMembers) : [];
}

const VARIABLE = /\{\{\s*([A-Za-z0-9_]+)\s*\}\}/g;

/** Their names, each once. */
export function variablesIn(text: string): string[] {
  return [...new Set([...text.matchAll(VARIABLE)].map(([, name = '']) => name))];
}

/** Of the body and of a header of text. Of other parts, and of parameters of a form that is not known, upstream decides. */
function variablesProblem(
  { format, text }: Members,
  kind: string,
  given: readonly Members[],
  isNamed: boolean,
): string | null {
  if (kind !== 'body' && !(kind === 'header' && format === 'TEXT')) return null;
  const variables = variablesIn(textOf(text));
  const parts = given.filter(({ type }) => textOf(type).toLowerCase() === kind);
  const parameters = parts.flatMap((part) => listOf(part.parameters));
  const names = parameters.map((parameter, index) =>
    isNamed ? textOf(parameter.parameter_name) : String(index + 1),
  );
  const wanted = isNamed ? variables : variables.map((_, index) => String(index + 1));
  const missing = wanted.filter((name) => !names.includes(name));
  const surplus = names.filter((name) => !wanted.includes(name));
  const shown = (all: readonly string[]) =>
    all
      .slice(0, 10)
      .map((name) => (name === '' ? 'one without parameter_name' : `{{${name.slice(0, 100)}}}`))
      .join(', ');
  if (missing.length > 0) return `the ${kind} lacks ${shown(missing)}.`;
  return surplus.length > 0 ? `the ${kind} has no ${shown(surplus)}.` : null;
}
