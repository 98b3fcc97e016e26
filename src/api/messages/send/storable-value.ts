import { joined, type Problem } from './kinds/problem.ts';

const MAX_DEPTH = 32;

/** What neither the database nor upstream can take: U+0000, half characters, and nesting without end. */
export function storableProblem(value: unknown, path = '', depth = 0): Problem | null {
  if (typeof value === 'string') return textProblem(value, path);
  if (typeof value !== 'object' || value === null) return null;
  if (depth >= MAX_DEPTH) {
    return { param: path, message: `Members may be nested ${MAX_DEPTH} levels deep.` };
  }
  for (const [name, member] of Object.entries(value)) {
    const wrongName = textProblem(name, path);
    if (wrongName !== null) return wrongName;
    const problem = storableProblem(member, joined(path, name), depth + 1);
    if (problem !== null) return problem;
  }
  return null;
}

function textProblem(text: string, path: string): Problem | null {
  if (text.isWellFormed() && !text.includes('\0')) return null;
  return { param: path, message: 'The text holds U+0000 or half of a surrogate pair.' };
}
