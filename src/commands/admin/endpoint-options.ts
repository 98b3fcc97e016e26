import { type Command, InvalidArgumentError } from 'commander';
import type { EndpointOptions, OptionRules } from '../../accounts/endpoint-options.ts';
import { makeAddressGuard } from '../../deliveries/sender/address-guard.ts';
import { makeHostResolver } from '../../deliveries/sender/resolve-host.ts';
import type { AdminTools } from './admin-action.ts';
import { readHeadersFromStdin } from './endpoint-stdin.ts';

/** Commander knows no null as a value, so the wish for the default stays a text until `givenEndpointOptions`. */
type OrDefault<Value> = Value | 'default';

/** The options of `endpoint add` and `endpoint update` as the parsers below leave them. */
export type EndpointCommandOptions = {
  description?: string;
  events?: OrDefault<string[]>;
  numbers?: OrDefault<string[]>;
  header?: Record<string, string | null>;
  headersStdin?: true;
  retrySchedule?: OrDefault<number[]>;
  timeoutMs?: OrDefault<number>;
  signature?: OrDefault<string>;
  maxInFlight?: OrDefault<number>;
  rateLimit?: OrDefault<number>;
  blockLimit?: OrDefault<number>;
  orderScope?: OrDefault<string>;
};

/** Adds what can be chosen for an endpoint; `default` as a value goes back to what holds without the option. */
export function withEndpointOptions(command: Command): Command {
  return command
    .option('--description <text>', 'what it is for')
    .option(
      '--events <types>',
      'event types, comma separated (default: all, also those to come)',
      orDefault(parseList),
    )
    .option(
      '--numbers <ids>',
      'phone number ids, comma separated (default: all, also those to come)',
      orDefault(parseList),
    )
    .option('--header <name: value>', 'header that its webhooks carry; may be repeated', parseHeader)
    .option('--headers-stdin', 'read headers as a JSON object from standard input, for credentials')
    .option(
      '--retry-schedule <seconds>',
      'waits between attempts, comma separated, 1 to 20 (default: the setting)',
      orDefault((text) => parseList(text).map(parseNumber)),
    )
    .option('--timeout-ms <ms>', 'of a whole attempt (default: the setting)', orDefault(parseNumber))
    .option(
      '--signature <profile>',
      'form of X-Service-Signature: standard, github or stripe',
      orDefault(asIs),
    )
    .option('--max-in-flight <n>', 'attempts at one time, 1 to 500', orDefault(parseNumber))
    .option('--rate-limit <n>', 'attempts per second, 1 to 10000 (default: no limit)', orDefault(parseNumber))
    .option(
      '--block-limit <seconds>',
      'let what fails for so long step aside for others of its key; 0 or never: it blocks them (default: the setting)',
      orDefault((text) => (text === 'never' ? 0 : parseNumber(text))),
    )
    .option(
      '--order-scope <scope>',
      'what is delivered one after the other: event, conversation or endpoint',
      orDefault(asIs),
    );
}

/** The options as the accounts take them; reads standard input when headers are to come from there. */
export async function givenEndpointOptions(options: EndpointCommandOptions): Promise<EndpointOptions> {
  const customHeaders = options.headersStdin
    ? { ...(await readHeadersFromStdin()), ...options.header }
    : options.header;
  const given = {
    eventTypes: options.events,
    phoneNumberIds: options.numbers,
    retryScheduleSeconds: options.retrySchedule,
    timeoutMs: options.timeoutMs,
    signatureProfile: options.signature,
    maxInFlight: options.maxInFlight,
    rateLimitPerSecond: options.rateLimit,
    blockLimitSeconds: options.blockLimit,
    orderScope: options.orderScope,
  };
  const orNull = Object.entries(given).map(([name, value]) => [name, value === 'default' ? null : value]);
  return withoutMissing({ ...Object.fromEntries(orNull), description: options.description, customHeaders });
}

function withoutMissing(given: object): EndpointOptions {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** By which rules endpoints are judged here: those of the sender. */
export function optionRulesOf({ config, database }: AdminTools): OptionRules {
  const guard = makeAddressGuard({ allowCidrs: config.webhooks.allowCidrs });
  const urlRules = { allowHttp: config.webhooks.allowHttp, guard, resolve: makeHostResolver() };
  return { database, urlRules, maxTimeoutMs: config.webhooks.timeoutMs };
}

function orDefault<Value>(parse: (text: string) => Value): (text: string) => OrDefault<Value> {
  return (text) => (text === 'default' ? text : parse(text));
}

function asIs(text: string): string {
  return text;
}

function parseList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** Reads a whole number. Throws commander's InvalidArgumentError. */
export function parseNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Write a whole number, or "default".');
}

/** Reads one `--header <name>: <value>`. Throws commander's InvalidArgumentError. */
function parseHeader(
  text: string,
  earlier: Record<string, string | null> = {},
): Record<string, string | null> {
  const [, name, value] = /^([^:]+):(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError('Write it as "<name>: <value>".');
  return { ...earlier, [name.trim()]: value.trim() };
}
