import { join } from 'node:path';
import type { Command } from 'commander';
import { requireDevelopment, SandboxRefusedError } from '../loopback-only.ts';
import { createSandboxClient, type SandboxClient, SandboxCommandError } from './sandbox-client.ts';

/** Where commands read and write; for tests. */
export type CommandEnvironment = {
  /** The state file of the embedded stack. */
  stateFile: string;
  write: (text: string) => void;
  writeError: (text: string) => void;
  setExitCode: (code: number) => void;
};

/** In the directory of `npm start`. */
const STATE_FILE = 'embedded.json';

/** What a command did: for programs, for people, and whether it counts as a success. */
type CommandOutcome = { json: Record<string, unknown>; text: string; ok: boolean };

type CommonOptions = { json?: boolean; url?: string; dataDir?: string };

/** What an action gets. */
type ActionInput<Options> = { client: SandboxClient; args: string[]; options: Options };

function report(environment: CommandEnvironment, options: CommonOptions, error: unknown): void {
  const isExpected = error instanceof SandboxCommandError || error instanceof SandboxRefusedError;
  if (!isExpected) {
    throw error;
  }
  environment.setExitCode(1);
  if (options.json) {
    const code = error instanceof SandboxCommandError ? error.code : 'refused';
    environment.write(`${JSON.stringify({ error: { code, message: error.message } })}\n`);
  } else {
    environment.writeError(`error: ${error.message}\n`);
  }
}

/** Runs work and reports the errors that a developer can do something about. */
export async function reportingErrors(
  environment: CommandEnvironment,
  options: CommonOptions,
  work: () => Promise<void>,
): Promise<void> {
  try {
    requireDevelopment();
    await work();
  } catch (error) {
    report(environment, options, error);
  }
}

/** Gives a command its common options, an example in its help, and what it does. */
export function sandboxAction<Options>(
  command: Command,
  environment: CommandEnvironment,
  example: string,
  run: (input: ActionInput<Options>) => Promise<CommandOutcome>,
): Command {
  return command
    .option('--url <url>', 'address of the sandbox (default: the one of the running npm start)')
    .option(
      '--data-dir <path>',
      'where the running npm start keeps its state, if it was started with --data-dir',
    )
    .option('--json', 'print one JSON object')
    .addHelpText('after', `\nExample:\n  npm run sandbox -- ${example}`)
    .action(async () => {
      const options = command.opts<CommonOptions & Options>();
      await reportingErrors(environment, options, async () => {
        const client = await createSandboxClient({
          stateFile:
            options.dataDir === undefined ? environment.stateFile : join(options.dataDir, STATE_FILE),
          ...(options.url === undefined ? {} : { url: options.url }),
        });
        const outcome = await run({ client, args: command.args, options });
        environment.write(options.json ? `${JSON.stringify(outcome.json)}\n` : `${outcome.text}\n`);
        if (!outcome.ok) {
          environment.setExitCode(1);
        }
      });
    });
}

/** The outcome of a webhook that was sent: good when the ingress answered 200. */
export function webhookOutcome(what: string, answer: Record<string, unknown>): CommandOutcome {
  const ok = answer.status === 200;
  const id = typeof answer.id === 'string' ? `\n  id        ${answer.id}` : '';
  const reason = ok ? '' : `\n  body      ${String(answer.responseBody).slice(0, 300)}`;
  const text = `${ok ? 'sent' : 'NOT accepted:'} ${what}${id}\n  answered  ${answer.status} in ${answer.ms} ms${receiverOf(answer)}${reason}`;
  const { body: _body, ...json } = answer;
  return { json, text, ok };
}

/** The tenant and the number that a built webhook is for; nothing for bytes that were given. */
function receiverOf({ to }: Record<string, unknown>): string {
  if (typeof to !== 'object' || to === null || !('wabaId' in to) || !('phoneNumberId' in to)) return '';
  const name = 'verifiedName' in to ? `${to.verifiedName}, ` : '';
  return `\n  to        ${name}WABA ${to.wabaId}, phone number ${to.phoneNumberId}`;
}
