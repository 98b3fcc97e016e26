import { lastValues, readFormText } from '../../platform/http/form-text.ts';
import { hasMoreValues, MAX_VALUES } from '../../platform/json/json-values.ts';
import type { ExternalApp } from '../external/external-app.ts';
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
      const fields = readFormText(bytes as Buffer, MAX_FIELDS);
      if (fields === 'too many fields') return done(wrongParameter(`A form has up to ${MAX_FIELDS} fields.`));
      if (fields === 'not UTF-8') return done(wrongParameter('The form is not UTF-8.'));
      const members = Object.entries(lastValues(fields)).map(([name, text]) => [name, memberOf(text)]);
      done(null, Object.fromEntries(members));
    },
  );
}

function memberOf(text: string): unknown {
  if (!/^\s*[[{]/.test(text) || hasMoreValues(text, MAX_VALUES)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
