import { Command, InvalidArgumentError, Option } from 'commander';
import type { TSchema } from 'typebox';
import { policyDefaults } from '../../features/accounts/tenant-policies.ts';
import { optionRulesOf } from '../../features/endpoints/endpoint-options.ts';
import { mailerOf } from '../../features/mail/mails.ts';
import { type AdminTools, adminAction, alignedFields } from '../../platform/cli/admin-action.ts';
import { parseList, parseNumber, readStdin } from '../../platform/cli/given-text.ts';
import { invalidValue } from '../../platform/request-input.ts';
import { ApiError } from '../errors/api-error.ts';
import { makeUpstreamCalls } from '../external/upstream-calls.ts';
import { validatorCompiler } from '../plugins/validation.ts';
import { PLATFORM_OPERATIONS } from './operations.ts';
import type { PlatformCall, PlatformOperation } from './platform-operation.ts';

type Members = Record<string, unknown>;
type Member = {
  type?: string;
  format?: string;
  description?: string;
  anyOf?: Member[];
  items?: { enum?: string[] };
};

/** `admin platform …`: the operations of the platform API, run here. */
export function platformCommand(): Command {
  const group = new Command('platform').description('the operations of the platform API, by externalId');
  for (const operation of PLATFORM_OPERATIONS)
    if (operation.example !== null) group.addCommand(commandOf(operation));
  return group;
}

const kebab = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** Parameters of the path are arguments; members of query and body are options, secrets come from standard input. */
function commandOf(operation: PlatformOperation): Command {
  const { id, summary, params, query, body, example } = operation;
  const command = new Command(kebab(id)).description(summary.charAt(0).toLowerCase() + summary.slice(1));
  const names = Object.keys(membersOf(params));
  for (const name of names) command.argument(`<${name}>`, membersOf(params)[name]?.description);
  const given = { ...membersOf(query), ...membersOf(body) };
  const isRequired = new Set(
    [query, body].flatMap((schema) => (schema as { required?: string[] } | undefined)?.required ?? []),
  );
  for (const [name, member] of Object.entries(given)) {
    if (name !== 'cursor' && name !== 'limit')
      command.addOption(optionOf(name, member).makeOptionMandatory(isRequired.has(name)));
  }
  return adminAction<Members>(command, `platform ${example}`, async ({ tools, args, options }) => {
    const input: Members = {};
    for (const [index, name] of names.entries()) input[name] = args[index];
    for (const [name, member] of Object.entries(given)) {
      const value = options[isSecret(member) ? `${name}Stdin` : name];
      if (value !== undefined) input[name] = isSecret(member) ? (await readStdin()).trim() : value;
    }
    for (const schema of [params, query, body]) if (schema !== undefined) checkPart(schema, input);
    const json = await runHere(tools, operation, input);
    const fields = Object.entries(json as Members).map(([name, value]): [string, unknown] => [
      name,
      shown(value),
    ]);
    return { json: json as object, text: alignedFields(fields) };
  });
}

function membersOf(schema: TSchema | undefined): Readonly<Record<string, Member>> {
  return (schema as { properties?: Record<string, Member> } | undefined)?.properties ?? {};
}

const isSecret = ({ format }: Member) => format === 'password';

function optionOf(name: string, member: Member): Option {
  const { description = 'as the API has it' } = member;
  const flag = `--${kebab(name)}`;
  if (isSecret(member)) return new Option(`${flag}-stdin`, 'read it from standard input');
  const type = member.type ?? member.anyOf?.[0]?.type;
  if (type === 'boolean') return new Option(flag, description);
  const option = new Option(`${flag} <${type === 'integer' ? 'number' : 'value'}>`, description);
  if (type === 'integer') return option.argParser(parseNullable);
  if (type === 'object' || (type === 'array' && member.items?.enum === undefined))
    return option.argParser(parseJson);
  return type === 'array' ? option.argParser(parseList) : option;
}

/** The policy of a tenant has values that null takes away; commander takes null for a value that is missing. */
function parseNullable(text: string): number | typeof DEFAULT {
  return text === 'default' ? DEFAULT : parseNumber(text);
}

const DEFAULT = Symbol('null');

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError('Write it as JSON.');
  }
}

/** As the API checks it. Throws RequestError `invalid_value`. */
function checkPart(schema: TSchema, input: Members): void {
  const part = Object.fromEntries(
    Object.keys(membersOf(schema)).flatMap((name) => (name in input ? [[name, input[name]]] : [])),
  );
  for (const [name, value] of Object.entries(part)) if (value === DEFAULT) input[name] = part[name] = null;
  const checked = validatorCompiler({ schema, httpPart: 'body', method: '', url: '' })(part);
  const error = typeof checked === 'object' && 'error' in checked ? checked.error : undefined;
  if (error instanceof ApiError) throw invalidValue(`${error.param ?? ''}: ${error.message}`, error.param);
}

function shown(value: unknown): unknown {
  return typeof value === 'object' && value !== null && !(value instanceof Date)
    ? JSON.stringify(value)
    : value;
}

async function runHere(tools: AdminTools, operation: PlatformOperation, input: Members): Promise<unknown> {
  const upstream = makeUpstreamCalls(tools.config);
  const { config } = tools;
  const call: PlatformCall = {
    tools: { ...tools, ...optionRulesOf(tools) },
    key: null,
    cursors: null,
    publicUrl: config.api.publicUrl,
    portal: config.portal,
    hasSignup: config.upstream.signup !== null,
    policyDefaults: policyDefaults(config),
    mailer: mailerOf(config, tools.secretBox),
    upstream,
    idempotencyKey: null,
  };
  try {
    return operation.json(await operation.run(call, input), call);
  } finally {
    await upstream.close();
  }
}
