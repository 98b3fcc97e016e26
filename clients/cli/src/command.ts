import type { ApiClient } from './api-client.ts';
import type { ExitCode } from './failure.ts';
import type { Output } from './output.ts';
import type { Profile } from './profile.ts';

/** What a command works with. */
export type Context = {
  output: Output;
  profile: Profile;
  /** The API with the key of the user. Throws Failure when there is no key. */
  api(): ApiClient;
  /** What the command line says of service and key. */
  account: Parameters<Profile['account']>[0];
  stdin: NodeJS.ReadStream;
  env: Readonly<Record<string, string | undefined>>;
  /** A user sits at a terminal, who can be asked and can press keys. */
  isInteractive: boolean;
  isJson: boolean;
};

export type OptionSpec = {
  type: 'string' | 'boolean';
  /** What stands for the value in the help. */
  value?: string;
  help: string;
  multiple?: true;
  /** For completion. */
  choices?: readonly string[];
};

export type Values = Readonly<Record<string, string | boolean | string[] | undefined>>;

export type Command = {
  name: string;
  /** Behind the name: "<endpoint>". */
  operands?: string;
  /** How many operands it takes, at least and at most. */
  count?: readonly [number, number];
  /** For completion of the first operand. */
  choices?: readonly string[];
  summary: string;
  details?: string;
  options?: Readonly<Record<string, OptionSpec>>;
  examples?: readonly string[];
  /** It does not speak to the service. */
  isLocal?: boolean;
  run(context: Context, operands: readonly string[], values: Values): Promise<ExitCode>;
};

/** Options of every command. */
const COMMON_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  json: { type: 'boolean', help: 'print JSON instead of a table' },
  help: { type: 'boolean', help: 'show help' },
};

/** Options of every command that speaks to the service. */
const SERVICE_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  url: { type: 'string', value: '<url>', help: 'base URL of the service, in place of the stored one' },
  'key-file': {
    type: 'string',
    value: '<path>',
    help: 'a file with the API key, in place of the stored one; - for standard input',
  },
};

/** All options of a command. */
export function optionsOf({ options = {}, isLocal = false }: Command): Readonly<Record<string, OptionSpec>> {
  return { ...options, ...(isLocal ? {} : SERVICE_OPTIONS), ...COMMON_OPTIONS };
}

/** The value of an option that takes text. */
export function textOf(values: Values, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
}
