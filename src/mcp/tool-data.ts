import packageJson from '../../package.json' with { type: 'json' };
import { ALLOWED_LEVELS } from './allowed-levels.ts';
import { type Passage, readPassages } from './docs-search.ts';
import { inputSchemaOf, type JsonSchema } from './input-schema.ts';
import { type Choices, type Effect, type Level, operationTools } from './tool-list.ts';

/** An operation of the API as a tool: data only. */
export type Tool = {
  id: string;
  title: string;
  description: string;
  inputSchema: JsonSchema;
  effect: Effect;
  level: Level;
  choices: Choices;
  method: string;
  path: string;
  /** The parameters of the query; others are in the path or in the body. */
  queryNames: readonly string[];
  isIdempotent: boolean;
  /** How many entries a page has; 0 for what has no pages. */
  pageSize: number;
};

export type ToolData = { version: string; tools: readonly Tool[]; passages: readonly Passage[] };

/**
 * What the server knows before it is asked. The command line is one file without the API and the documents: its build
 * puts the result in place of this module.
 */
export function readToolData(): ToolData {
  const tools = operationTools(ALLOWED_LEVELS).map(({ operation, effect, level, choices }): Tool => {
    const { id, summary, description, method, path, query, body, idempotent = false } = operation;
    return {
      id,
      title: summary,
      effect,
      level,
      choices,
      method,
      path,
      description: [sentenceOf(summary, description), ...limitsOf(choices)].join(' '),
      inputSchema: inputSchemaOf(operation, choices),
      queryNames: Object.keys(membersOf(query)),
      isIdempotent: idempotent,
      pageSize: membersOf(query).limit?.default ?? membersOf(body).limit?.default ?? 0,
    };
  });
  return { version: packageJson.version, tools, passages: readPassages() };
}

function limitsOf(choices: Choices): string[] {
  return Object.entries(choices).map(
    ([name, values]) => `For this tool, \`${name}\` can only be ${values.join(' or ')}.`,
  );
}

/** One sentence: the API's document shows the description below its title, where it may be half of one. */
function sentenceOf(title: string, description: string): string {
  const isWord = /^[A-Z][a-z]*\b/.test(description);
  return `${title}: ${isWord ? description[0]?.toLowerCase() : description[0]}${description.slice(1)}`;
}

function membersOf(schema: object | undefined): Readonly<Record<string, { default?: number }>> {
  return (schema as { properties?: Record<string, { default?: number }> } | undefined)?.properties ?? {};
}
