import { AccountError } from '../../../accounts/account-error.ts';
import type { EndpointOptions } from '../../../accounts/endpoint-options.ts';
import type { EndpointView } from '../../../accounts/endpoint-view.ts';
import type { FormValues } from '../form-values.ts';

/** The fields of the form as texts: what was written comes back with the complaint about it. */
export type EndpointFormValues = {
  url: string;
  description: string;
  eventTypes: string[];
  phoneNumberIds: string[];
  orderScope: string;
  signatureProfile: string;
  retrySchedule: string;
  timeoutSeconds: string;
  maxInFlight: string;
  rateLimitPerSecond: string;
  blockLimitSeconds: string;
  /** `Name: value` line by line. */
  newHeaders: string;
  removedHeaders: string[];
};

/** A new endpoint with every default. */
export const NEW_ENDPOINT: EndpointFormValues = {
  url: '',
  description: '',
  eventTypes: [],
  phoneNumberIds: [],
  orderScope: 'event',
  signatureProfile: 'standard',
  retrySchedule: '',
  timeoutSeconds: '',
  maxInFlight: '',
  rateLimitPerSecond: '',
  blockLimitSeconds: '',
  newHeaders: '',
  removedHeaders: [],
};

/** The fields as an endpoint has them. */
export function valuesOf(endpoint: EndpointView): EndpointFormValues {
  const { retryScheduleSeconds, timeoutMs, wantedOrderScope, orderScope } = endpoint;
  return {
    ...NEW_ENDPOINT,
    url: endpoint.url,
    description: endpoint.description,
    eventTypes: [...(endpoint.eventTypes ?? [])],
    phoneNumberIds: [...(endpoint.phoneNumberIds ?? [])],
    orderScope: wantedOrderScope ?? orderScope,
    signatureProfile: endpoint.signatureProfile,
    retrySchedule: retryScheduleSeconds?.join(', ') ?? '',
    timeoutSeconds: timeoutMs === null ? '' : String(timeoutMs / 1_000),
    maxInFlight: textOf(endpoint.maxInFlight),
    rateLimitPerSecond: textOf(endpoint.rateLimitPerSecond),
    blockLimitSeconds: textOf(endpoint.blockLimitSeconds),
  };
}

/** The fields of a form that was sent. */
export function readEndpointForm(form: FormValues): EndpointFormValues {
  return {
    url: form.text('url').trim(),
    description: form.text('description'),
    eventTypes: form.list('eventTypes'),
    phoneNumberIds: form.list('phoneNumberIds'),
    orderScope: form.text('orderScope'),
    signatureProfile: form.text('signatureProfile'),
    retrySchedule: form.text('retrySchedule'),
    timeoutSeconds: form.text('timeoutSeconds'),
    maxInFlight: form.text('maxInFlight'),
    rateLimitPerSecond: form.text('rateLimitPerSecond'),
    blockLimitSeconds: form.text('blockLimitSeconds'),
    newHeaders: form.text('newHeaders'),
    removedHeaders: form.list('removedHeaders'),
  };
}

/**
 * What the form asks for. An empty field and no box ticked mean the default. Throws AccountError for what is no number
 * and no header; everything else is judged where REST has it judged.
 */
export function optionsOf(values: EndpointFormValues): EndpointOptions & { url: string } {
  const seconds = numberIn('timeoutMs', values.timeoutSeconds);
  return {
    url: values.url,
    description: values.description,
    eventTypes: values.eventTypes.length === 0 ? null : values.eventTypes,
    phoneNumberIds: values.phoneNumberIds.length === 0 ? null : values.phoneNumberIds,
    orderScope: values.orderScope || null,
    signatureProfile: values.signatureProfile || null,
    retryScheduleSeconds: scheduleIn(values.retrySchedule),
    timeoutMs: seconds === null ? null : Math.round(seconds * 1_000),
    maxInFlight: numberIn('maxInFlight', values.maxInFlight),
    rateLimitPerSecond: numberIn('rateLimitPerSecond', values.rateLimitPerSecond),
    blockLimitSeconds: numberIn('blockLimitSeconds', values.blockLimitSeconds),
    customHeaders: headersIn(values),
  };
}

function scheduleIn(text: string): number[] | null {
  const parts = text.split(/[\s,;]+/).filter((part) => part !== '');
  if (parts.length === 0) return null;
  return parts.map((part) => numberIn('retryScheduleSeconds', part) ?? 0);
}

function numberIn(param: string, text: string): number | null {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  if (/^\d{1,12}(\.\d{1,3})?$/.test(trimmed)) return Number(trimmed);
  throw new AccountError('invalid_value', 'Write numbers only, or leave it empty for the default.', param);
}

/** Removals first, so that a header that is removed and written anew is set. */
function headersIn({ newHeaders, removedHeaders }: EndpointFormValues): Record<string, string | null> {
  const change = new Map<string, string | null>(removedHeaders.map((name) => [name, null]));
  const names = new Set<string>();
  for (const line of newHeaders.split(/\r?\n/).filter((text) => text.trim() !== '')) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).trim();
    if (colon < 1 || name === '') throw badHeader('Write each header as "Name: value", one to a line.');
    if (names.has(name.toLowerCase())) throw badHeader(`The header "${name.slice(0, 80)}" is there twice.`);
    names.add(name.toLowerCase());
    for (const removed of change.keys())
      if (removed.toLowerCase() === name.toLowerCase()) change.delete(removed);
    change.set(name, line.slice(colon + 1).trim());
  }
  return Object.fromEntries(change);
}

function badHeader(message: string): AccountError {
  return new AccountError('invalid_value', message, 'customHeaders');
}

function textOf(value: number | null): string {
  return value === null ? '' : String(value);
}
