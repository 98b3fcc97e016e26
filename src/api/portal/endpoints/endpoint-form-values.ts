import {
  type AnySetting,
  type GivenSettings,
  type SettingName,
  settingsOf,
} from '../../../engine/endpoint/settings.ts';
import type { EndpointOptions } from '../../../features/endpoints/endpoint-options.ts';
import type { EndpointView } from '../../../features/endpoints/endpoints.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { type FormValues, formLine, formLines } from '../form-values.ts';

/** The fields of the form as texts: what was written comes back with the complaint about it. */
export type EndpointFormValues = {
  url: string;
  /** Of each setting; fields that are not for several texts have one. */
  settings: Readonly<Record<SettingName, readonly string[]>>;
  /** `Name: value` line by line. */
  newHeaders: string;
  removedHeaders: string[];
  /** For the format `meta`; empty: as it is. */
  appSecret: string;
  verifyToken: string;
};

/** More than any endpoint has: what is written by hand is explained where it is saved. */
const MAX_VALUES = 100;

export const ENDPOINT_FIELDS = {
  url: formLine(4_096),
  ...Object.fromEntries(
    settingsOf().map(([, { kind, portal }]) => [
      portal.field,
      kind === 'texts' ? formLines(MAX_VALUES) : formLine(kind === 'lines' ? 16_384 : 4_096),
    ]),
  ),
  newHeaders: formLine(16_384),
  removedHeaders: formLines(MAX_VALUES),
  appSecret: formLine(),
  verifyToken: formLine(),
  check: formLine(),
};

export const NEW_ENDPOINT: EndpointFormValues = {
  url: '',
  settings: ofEach((_, setting) => defaultTexts(setting)),
  newHeaders: '',
  removedHeaders: [],
  appSecret: '',
  verifyToken: '',
};

export function valuesOf(endpoint: EndpointView): EndpointFormValues {
  const settings = ofEach((name, setting) => textsOf(setting, endpoint[name]));
  return { ...NEW_ENDPOINT, url: endpoint.url, settings };
}

export function readEndpointForm(form: FormValues): EndpointFormValues {
  return {
    url: form.text('url').trim(),
    settings: ofEach((_, { portal }) => form.list(portal.field)),
    newHeaders: form.text('newHeaders'),
    removedHeaders: form.list('removedHeaders'),
    appSecret: form.text('appSecret').trim(),
    verifyToken: form.text('verifyToken').trim(),
  };
}

/** An empty field and no box ticked mean the default. Throws RequestError for what is no number and no header. */
export function optionsOf(values: EndpointFormValues): EndpointOptions & { url: string } {
  const { url, settings, appSecret, verifyToken } = values;
  const given = ofEach((name, setting) => valueIn(name, setting, settings[name])) as GivenSettings;
  return {
    url,
    ...given,
    customHeaders: headersIn(values),
    ...(appSecret !== '' && { appSecret }),
    ...(verifyToken !== '' && { verifyToken }),
  };
}

/** What the field of a setting shows where nothing was chosen. */
export function defaultTexts(setting: AnySetting): string[] {
  return textsOf(setting, setting.fallback);
}

function ofEach<Value>(make: (name: SettingName, setting: AnySetting) => Value): Record<SettingName, Value> {
  const made = settingsOf().map(([name, setting]) => [name, make(name, setting)]);
  return Object.fromEntries(made);
}

function textsOf({ kind, portal }: AnySetting, value: unknown): string[] {
  if (value === null) return [];
  if (Array.isArray(value))
    return kind === 'texts' ? [...value] : [value.join(kind === 'lines' ? '\n' : ', ')];
  return [typeof value === 'number' ? String(value / (portal.perUnit ?? 1)) : String(value)];
}

function valueIn(name: SettingName, { kind, portal }: AnySetting, texts: readonly string[]): unknown {
  const [text = ''] = texts;
  switch (kind) {
    case 'text':
      return text;
    case 'choice':
      return text || null;
    case 'texts':
      return texts.length === 0 ? null : texts;
    case 'lines': {
      const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
      return lines.length === 0 ? null : lines;
    }
    case 'number': {
      const { perUnit = 1 } = portal;
      const number = numberIn(name, text);
      return number === null || perUnit === 1 ? number : Math.round(number * perUnit);
    }
    case 'numbers': {
      const parts = text.split(/[\s,;]+/).filter((part) => part !== '');
      return parts.length === 0 ? null : parts.map((part) => numberIn(name, part) ?? 0);
    }
  }
}

function numberIn(param: string, text: string): number | null {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  if (/^\d{1,12}(\.\d{1,3})?$/.test(trimmed)) return Number(trimmed);
  throw new RequestError('invalid_value', 'Write numbers only, or leave it empty for the default.', param);
}

/** Removals first, so that a header that is removed and written again is set. */
function headersIn({ newHeaders, removedHeaders }: EndpointFormValues): Record<string, string | null> {
  const change = new Map<string, [string, string | null]>(
    removedHeaders.map((name) => [name.toLowerCase(), [name, null]]),
  );
  const names = new Set<string>();
  for (const line of newHeaders.split(/\r?\n/).filter((text) => text.trim() !== '')) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).trim();
    const key = name.toLowerCase();
    if (colon < 1 || name === '') throw badHeader('Write each header as "Name: value", one to a line.');
    if (names.has(key)) throw badHeader(`The header "${name.slice(0, 80)}" is there twice.`);
    names.add(key);
    change.set(key, [name, line.slice(colon + 1).trim()]);
  }
  return Object.fromEntries(change.values());
}

function badHeader(message: string): RequestError {
  return new RequestError('invalid_value', message, 'customHeaders');
}
