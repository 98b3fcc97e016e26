/** What is wrong with a request: `param` is the path of the member, e.g. `text/body`. */
export type Problem = { param: string; message: string };

/** Exactly one of the two members has to be there; `path` is the object's own. */
export function exactlyOne(
  value: Readonly<Record<string, unknown>>,
  names: readonly [string, string],
  path: string,
): Problem | null {
  const given = names.filter((name) => value[name] !== undefined);
  if (given.length === 1) return null;
  const [first, second] = names;
  if (given.length === 0) return { param: joined(path, first), message: `Give ${first} or ${second}.` };
  return { param: joined(path, second), message: `Give ${first} or ${second}, not both.` };
}

/** Of several values of one kind none may come twice. */
export function noneTwice(values: readonly (readonly [param: string, value: string])[]): Problem | null {
  const seen = new Set<string>();
  for (const [param, value] of values) {
    if (seen.has(value)) return { param, message: 'The value is used twice.' };
    seen.add(value);
  }
  return null;
}

/** The path of a member. */
export function joined(path: string, name: string | number): string {
  return path === '' ? String(name) : `${path}/${name}`;
}

/** The first problem of several checks. */
export function firstProblem(...checks: readonly (() => Problem | null)[]): Problem | null {
  for (const check of checks) {
    const problem = check();
    if (problem !== null) return problem;
  }
  return null;
}
