import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Kind } from '../../../engine/endpoint/setting.ts';
import { type AnySetting, settingsOf } from '../../../engine/endpoint/settings.ts';
import { parseList, parseNumber, readStdin } from '../../../platform/cli/given-text.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import type { EndpointOptions } from '../endpoint-options.ts';

const PARSERS: Record<Kind, (text: string) => unknown> = {
  text: (text) => text,
  choice: (text) => text,
  texts: parseList,
  lines: (text) => text.split(/\r?\n|;(?=\s*(?:not\s+)?\$)/).filter((line) => line.trim() !== ''),
  number: parseNumber,
  numbers: (text) => parseList(text).map(parseNumber),
};

/** Options of the settings are named as commander does it. */
export type EndpointCommandOptions = Record<string, unknown> & {
  header?: Record<string, string | null>;
  headersStdin?: true;
  appSecretStdin?: true;
  verifyToken?: string;
};

/** `default` as a value goes back to what holds without the option. */
export function withEndpointOptions(command: Command): Command {
  addSettings(command, settingsOf('where', 'what'));
  command
    .option('--header <name: value>', 'header that its webhooks carry; may be repeated', parseHeader)
    .option('--headers-stdin', 'read headers as a JSON object from standard input, for credentials')
    .option(
      '--app-secret-stdin',
      'read the app secret for --format meta from standard input; else one is made',
    )
    .option('--verify-token <text>', 'for --format meta: let the URL prove first that it knows this token');
  addSettings(command, settingsOf('retries', 'signature', 'limits', 'order'));
  return command;
}

function addSettings(command: Command, settings: readonly [string, AnySetting][]): void {
  for (const [, setting] of settings) {
    command.option(setting.command.flags, setting.command.help, (text: string) => parsed(setting, text));
  }
}

/** Commander knows no null as a value, so the wish for the default stays a text until `givenEndpointOptions`. */
function parsed({ kind, command }: AnySetting, text: string): unknown {
  const { words = {} } = command;
  if (text === 'default') return text;
  return Object.hasOwn(words, text) ? words[text] : PARSERS[kind](text);
}

/** Reads standard input when headers are to come from there. */
export async function givenEndpointOptions(options: EndpointCommandOptions): Promise<EndpointOptions> {
  const { headersStdin, appSecretStdin, verifyToken } = options;
  if (headersStdin && appSecretStdin) {
    throw invalidValue('Standard input is either headers or the app secret: change one after the other.');
  }
  const appSecret = appSecretStdin ? (await readStdin()).trim() : undefined;
  const customHeaders = headersStdin
    ? { ...(await readHeadersFromStdin()), ...options.header }
    : options.header;
  const given = settingsOf().flatMap(([name, { kind, command }]) => {
    const value = options[new Option(command.flags).attributeName()];
    if (value === undefined) return [];
    return [[name, value === 'default' && kind !== 'text' ? null : value]];
  });
  return {
    ...Object.fromEntries(given),
    ...(customHeaders !== undefined && { customHeaders }),
    ...(appSecret !== undefined && { appSecret }),
    ...(verifyToken !== undefined && { verifyToken }),
  };
}

/** `--header <name>: <value>`. Throws commander's InvalidArgumentError. */
function parseHeader(
  text: string,
  earlier: Record<string, string | null> = {},
): Record<string, string | null> {
  const [, name, value] = /^([^:]+):(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError('Write it as "<name>: <value>".');
  return { ...earlier, [name.trim()]: value.trim() };
}

/** As JSON: `{"Authorization": "Bearer …", "X-Old": null}`. */
async function readHeadersFromStdin(): Promise<Record<string, string | null>> {
  const headers = parseJson(await readStdin());
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) throw wrongHeaders();
  for (const value of Object.values(headers)) {
    if (typeof value !== 'string' && value !== null) throw wrongHeaders();
  }
  return headers as Record<string, string | null>;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw wrongHeaders();
  }
}

function wrongHeaders(): Error {
  return invalidValue('Standard input must be a JSON object of header names and texts (null removes one).');
}
