import type { GivenDecision } from '../activities/approve-api-key.ts';

/**
 * What the input of a signal `approve` or `deny` means: nothing, a note as text, or `{"note": "…", "by": "…"}`, each
 * member of it optional. Null: it is something else.
 */
export function readDecision(state: GivenDecision['state'], args: readonly unknown[]): GivenDecision | null {
  const [input] = args;
  if (args.length > 1) return null;
  if (input === undefined || input === null) return { state, note: '', by: null };
  if (typeof input === 'string') return { state, note: input, by: null };
  if (typeof input !== 'object' || Array.isArray(input)) return null;
  const { note = '', by = null, ...others } = input as Record<string, unknown>;
  if (typeof note !== 'string' || (typeof by !== 'string' && by !== null)) return null;
  return Object.keys(others).length === 0 ? { state, note, by } : null;
}
