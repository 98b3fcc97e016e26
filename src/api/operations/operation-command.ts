import { Command, Option } from 'commander';
import type { TSchema } from 'typebox';
import { makeDeliveryStart } from '../../engine/deliveries/delivery-starter.ts';
import { listWabas } from '../../features/accounts/accounts.ts';
import { optionRulesOf } from '../../features/endpoints/endpoint-options.ts';
import { type AdminTools, adminAction, parseIsoTime } from '../../platform/cli/admin-action.ts';
import { parseList, parseNumber } from '../../platform/cli/given-text.ts';
import { invalidValue } from '../../platform/request-input.ts';
import { openTemporalConnection } from '../../platform/temporal/client-connection.ts';
import type { Call, CommandDescription, Operation, OptionDescription } from './operation.ts';

type Members = Record<string, unknown>;

export function commandGroup(name: string, description: string, parts: readonly Command[]): Command {
  const group = new Command(name).description(description);
  for (const part of parts) group.addCommand(part);
  return group;
}

/** Throws for an operation without a command. */
export function operationCommand(operation: Operation): Command {
  const described = operation.command;
  if (described === undefined) throw new Error(`the operation ${operation.id} has no command`);
  const { name, help, example, waba, argument, options = {}, showAll } = described;
  const command = new Command(name.split(' ').at(-1)).description(help);
  const hasId = operation.path.includes('/:id');
  if (hasId) command.argument('<id>', argument);
  if (typeof waba === 'string') {
    const text = showAll === undefined ? waba : `${waba} (default: all)`;
    command.addOption(new Option('--waba <id>', text).makeOptionMandatory(showAll === undefined));
  }
  for (const [member, option] of Object.entries(options)) {
    if (option !== undefined) command.addOption(optionOf(option, memberSchema(operation, member)));
  }
  described.extend?.(command);
  if (described.confirmDeletion !== undefined) command.option('--yes', 'confirm the deletion');
  return adminAction<Members>(command, example, async ({ tools, args, options: given }) => {
    const input = { ...(hasId && { id: args[0] ?? '' }), ...membersOf(described, given) };
    Object.assign(input, await described.read?.(given));
    if (showAll !== undefined && given.waba === undefined) {
      const results: unknown[] = [];
      for (const { wabaId } of await listWabas(tools.database)) {
        results.push(await withCall(tools, wabaId, (call) => operation.run(call, input)));
      }
      return showAll(results);
    }
    const wabaId = typeof waba === 'string' ? String(given.waba) : await waba(tools, args[0] ?? '');
    return await withCall(tools, wabaId, async (call) => {
      if (described.confirmDeletion !== undefined && given.yes !== true) {
        throw invalidValue(`${await described.confirmDeletion(call, input)}: confirm with --yes.`);
      }
      const result = await operation.run(call, input);
      return await described.show(result, { tools, call, input });
    });
  });
}

/** Throws for a member that the operation does not have. */
export function memberSchema({ id, params, query, body }: Operation, member: string): TSchema {
  for (const part of [params, query, body]) {
    const { properties = {} } = { ...part } as { properties?: Readonly<Record<string, TSchema>> };
    if (properties[member] !== undefined) return properties[member];
  }
  throw new Error(`the operation ${id} has no member ${member}`);
}

function optionOf(described: OptionDescription, schema: TSchema): Option {
  const { flags, help, isRequired = false, showsChoices, isRepeated } = described;
  const option = new Option(flags, help).makeOptionMandatory(isRequired).default(described.default);
  const { type, format, enum: values } = schema as { type?: string; format?: string; enum?: string[] };
  if (showsChoices && values !== undefined) return option.choices(values);
  if (format === 'date-time') return option.argParser((text) => parseIsoTime(text).toISOString());
  if (type === 'integer' || type === 'number') return option.argParser(parseNumber);
  if (type !== 'array') return option;
  return isRepeated
    ? option.argParser((text, earlier: string[] = []) => [...earlier, text])
    : option.argParser(parseList);
}

function membersOf({ options = {} }: CommandDescription<Members, unknown>, given: Members): Members {
  const members = Object.entries(options).flatMap(([member, option]) => {
    const value = option === undefined ? undefined : given[new Option(option.flags).attributeName()];
    return value === undefined ? [] : [[member, value]];
  });
  return Object.fromEntries(members);
}

/** Beside the time limit of the attempt itself. */
const SPARE_MS = 5_000;

async function withCall<T>(tools: AdminTools, wabaId: string, run: (call: Call) => Promise<T>): Promise<T> {
  const { config } = tools;
  const temporal = openTemporalConnection(config);
  const startDelivery = makeDeliveryStart(config, temporal);
  try {
    return await run({
      tools: { ...tools, ...optionRulesOf(tools) },
      wabaId,
      by: { name: 'operator', inText: 'an operator' },
      testEvents: { startDelivery, waitMs: config.webhooks.timeoutMs + SPARE_MS },
      cursors: null,
      timeoutMs: null,
    });
  } finally {
    await temporal.close();
  }
}
