import { parseArgs } from 'node:util';
import { readPastContinue } from '../../../src/platform/http/interim-responses.ts';
import packageJson from '../package.json' with { type: 'json' };
import { type ApiClient, makeApiClient } from './api-client.ts';
import { type Command, type Context, optionsOf, textOf, type Values } from './command.ts';
import { ACCOUNT_COMMANDS } from './commands-account.ts';
import { BROADCAST_COMMANDS } from './commands-broadcasts.ts';
import { CUSTOMER_COMMANDS } from './commands-customers.ts';
import { EVENT_COMMANDS } from './commands-events.ts';
import { LIVE_COMMANDS, LOCAL_COMMANDS } from './commands-live.ts';
import { mcp } from './commands-mcp.ts';
import { SCHEDULED_COMMANDS } from './commands-scheduled.ts';
import { SENDING_COMMANDS } from './commands-sending.ts';
import { TEMPLATE_COMMANDS } from './commands-templates.ts';
import { completionScript, SHELLS } from './completion.ts';
import { EXIT, type ExitCode, Failure, wrongUsage } from './failure.ts';
import { commandHelp, generalHelp } from './help.ts';
import { makeOutput } from './output.ts';
import { openProfile } from './profile.ts';

const completion: Command = {
  name: 'completion',
  operands: `<${SHELLS.join('|')}>`,
  count: [1, 1],
  choices: SHELLS,
  isLocal: true,
  summary: 'print a script that completes commands and options',
  examples: [
    'source <(heliograph completion bash)',
    'heliograph completion fish > ~/.config/fish/completions/heliograph.fish',
  ],
  async run({ output }, [shell = '']) {
    output.line(completionScript(shell, COMMANDS));
    return EXIT.ok;
  },
};

const GROUPS: readonly (readonly [string, readonly Command[]])[] = [
  ['Account', ACCOUNT_COMMANDS],
  ['Live events', LIVE_COMMANDS],
  ['Events and deliveries', EVENT_COMMANDS],
  ['Sending', [...SENDING_COMMANDS, ...SCHEDULED_COMMANDS, ...TEMPLATE_COMMANDS, ...BROADCAST_COMMANDS]],
  ['Customers', CUSTOMER_COMMANDS],
  ['AI assistants', [mcp]],
  ['Without an API key', [...LOCAL_COMMANDS, completion]],
];

const COMMANDS = GROUPS.flatMap(([, commands]) => commands);

type Process = Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr' | 'env'>;

/** Runs a command line and returns the exit code. */
export async function run(
  args: readonly string[],
  { stdin, stdout, stderr, env }: Process,
): Promise<ExitCode> {
  readPastContinue();
  const output = makeOutput(stdout, stderr, env);
  try {
    const [name, ...rest] = args;
    if (name === '--version' || name === '-v') {
      output.line(packageJson.version);
      return EXIT.ok;
    }
    if (
      name === undefined ||
      name === '--help' ||
      name === '-h' ||
      (name === 'help' && rest[0] === undefined)
    ) {
      output.line(generalHelp(GROUPS));
      return name === undefined ? EXIT.usage : EXIT.ok;
    }
    const command = commandNamed(name === 'help' ? (rest[0] ?? '') : name);
    const { operands, values } = readArguments(command, name === 'help' ? ['--help'] : rest);
    if (values.help === true) {
      output.line(commandHelp(command));
      return EXIT.ok;
    }
    const profile = openProfile(env);
    const account = { url: textOf(values, 'url'), keyFile: textOf(values, 'key-file') };
    let asked: ApiClient | null = null;
    const context: Context = {
      output,
      profile,
      account,
      stdin,
      env,
      isJson: values.json === true,
      isInteractive: stdin.isTTY === true && stderr.isTTY === true,
      api: () => {
        asked ??= makeApiClient(profile.account(account));
        return asked;
      },
    };
    return await command.run(context, operands, values).catch((error: unknown) => {
      throw asked === null ? error : notUnderstood(error, asked);
    });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    output.progress('');
    output.note(output.style('red', error.message));
    return error.exitCode;
  }
}

/** JSON of another server has other members, which no command can show. */
function notUnderstood(error: unknown, { account, hasResponded }: ApiClient): unknown {
  const isOfShape = error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
  if (!isOfShape || !hasResponded()) return error;
  return new Failure(
    EXIT.unreachable,
    `${account.url} responded, but not as Heliograph ${packageJson.version} does: is the URL right, and are tool and service of one version? (${error.message})`,
    { cause: error },
  );
}

function commandNamed(name: string): Command {
  const command = COMMANDS.find((one) => one.name === name);
  if (command !== undefined) return command;
  const close = COMMANDS.filter((one) => name !== '' && one.name.startsWith(name.slice(0, 1))).map(
    (one) => one.name,
  );
  const hint = close.length === 0 ? '' : ` Do you mean ${close.join(' or ')}?`;
  throw wrongUsage(`There is no command ${JSON.stringify(name)}.${hint} See heliograph --help.`);
}

/** Operands and options of a command. Throws Failure for what the command does not take. */
export function readArguments(
  command: Command,
  args: readonly string[],
): { operands: string[]; values: Values } {
  const options = Object.fromEntries(
    Object.entries(optionsOf(command)).map(([name, { type, multiple = false }]) => [
      name,
      { type, multiple },
    ]),
  );
  const { positionals, values } = parsed(command, () =>
    parseArgs({ args: [...args], options, allowPositionals: true }),
  );
  const [least, most] = command.count ?? [0, 0];
  if (values.help !== true && (positionals.length < least || positionals.length > most)) {
    throw wrongUsage(`Usage: heliograph ${command.name} ${command.operands ?? ''}`.trim());
  }
  return { operands: positionals, values: values as Values };
}

function parsed<T>({ name }: Command, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    // Only its first sentence is about the command line of the user.
    const message = (error as Error).message.split(/\.\s/)[0];
    throw wrongUsage(`${message}. See heliograph ${name} --help.`);
  }
}
