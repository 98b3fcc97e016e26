import { formFields } from '../../platform/http/utf8-text.ts';
import { hasMoreValues } from '../../platform/json/json-values.ts';
import type { ExternalApp } from '../external/external-app.ts';
import { MAX_VALUES } from '../plugins/body-parsers.ts';
import { wrongParameter } from './facade-error.ts';

/** More than any message has. */
const MAX_FIELDS = 100;

/**
 * A message as a form, as upstream takes it too: each field is a member, and an object or a list is a text of JSON
 * (`to=12025550143&text={"body":"Hello"}`).
 */
export function readMessageForms(scope: ExternalApp): void {
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'buffer' },
    (_request, bytes, done) => {
      if (hasMoreFields(bytes as Buffer))
        return done(wrongParameter(`A form has up to ${MAX_FIELDS} fields.`));
      const fields = formFields(bytes as Buffer);
      if (fields === null) return done(wrongParameter('The form is not UTF-8.'));
      done(null, Object.fromEntries([...fields].map(([name, text]) => [name, memberOf(text)])));
    },
  );
}

function hasMoreFields(bytes: Buffer): boolean {
  let fields = 1;
  for (let at = bytes.indexOf('&'); at !== -1 && fields <= MAX_FIELDS; at = bytes.indexOf('&', at + 1))
    fields += 1;
  return fields > MAX_FIELDS;
}

function memberOf(text: string): unknown {
  if (!/^\s*[[{]/.test(text) || hasMoreValues(text, MAX_VALUES)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
