/** Reading JSON of others without trusting its shape: what is not as expected reads as nothing. */

export type Members = Readonly<Record<string, unknown>>;

export function isMembers(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The members of an object; none for anything else. */
export function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {};
}

/** Text and numbers as text; nothing for anything else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/** The objects of a list; none for anything else. */
export function listOf(value: unknown): Members[] {
  return Array.isArray(value) ? value.map(membersOf) : [];
}
