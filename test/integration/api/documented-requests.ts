import type { DocumentedOperation } from '../../support/openapi-document.ts';

/** The path of an operation with the examples of its parameters, or with another text for one of them. */
export function pathOf(
  { path, parameters }: DocumentedOperation,
  replaced?: { name: string; text: string },
): string {
  return path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => {
    if (name === replaced?.name) return replaced.text;
    return encodeURIComponent(String(parameters.find((parameter) => parameter.name === name)?.example));
  });
}

/** Stands in a template for the value that is tried. */
export const PLACE = '@@ here @@';

/** The bodies that the document shows. */
export function exampleBodies({ requestBody }: DocumentedOperation): unknown[] {
  const media = requestBody?.content['application/json'];
  return Object.values(media?.examples ?? {}).map(({ value }) => value);
}

/** The body once for each of its members, with that one marked, and once with a member more. */
export function templatesOf(body: unknown): string[] {
  if (typeof body !== 'object' || body === null) return [];
  const entries = Object.entries(body);
  const put = (name: string, value: unknown) =>
    JSON.stringify(Array.isArray(body) ? body.with(Number(name), value) : { ...body, [name]: value });
  const nested = entries.flatMap(([name, value]) =>
    templatesOf(value).map((template) => put(name, PLACE).replace(`"${PLACE}"`, () => template)),
  );
  const more = Array.isArray(body) ? [] : [put('unknown', PLACE)];
  return [...entries.map(([name]) => put(name, PLACE)), ...more, ...nested];
}
