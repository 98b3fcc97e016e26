import { Argument, Command, InvalidArgumentError } from 'commander';
import { FAULT_TARGETS } from '../fault-register.ts';
import { type CommandEnvironment, sandboxAction } from './sandbox-action.ts';

type FaultOptions = {
  id?: string;
  status?: number;
  code?: number;
  delayMs?: number;
  times?: number;
  accepted?: boolean;
};

const KINDS = ['slow', 'status', 'wrong_hash', 'gone', 'reset', 'endless', 'too_large', 'expired'];

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) {
    throw new InvalidArgumentError('This is not a whole number.');
  }
  return Number(text);
}

function addCommand(environment: CommandEnvironment): Command {
  const command = new Command('add')
    .description('let the platform fail')
    .addArgument(new Argument('<target>', 'what fails').choices(FAULT_TARGETS))
    .addArgument(new Argument('<kind>', 'how it fails').choices(KINDS))
    .option('--id <id>', 'only for this media, phone number or catalog id')
    .option('--status <number>', 'HTTP status, for kind status', wholeNumber)
    .option('--code <number>', 'upstream error code, for kind status', wholeNumber)
    .option('--delay-ms <ms>', 'wait of kind slow; pause between chunks of kind endless', wholeNumber)
    .option('--times <number>', 'so many requests; all unless given', wholeNumber)
    .option('--accepted', 'of send: the message is accepted all the same, only the answer fails');
  const example = 'fault add media_download status --status 503 --times 3';
  return sandboxAction<FaultOptions>(command, environment, example, async ({ client, args, options }) => {
    const [match, kind] = args;
    const { id, status, code, delayMs, times, accepted } = options;
    // JSON leaves out the members that are undefined.
    const json = await client.post('/sandbox/faults', {
      match,
      kind,
      id,
      status,
      code,
      delayMs,
      times,
      accepted,
    });
    const extent = times === undefined ? 'until cleared' : `${times} times`;
    return { json, text: `${match} now fails with ${kind}, ${extent}`, ok: true };
  });
}

function listCommand(environment: CommandEnvironment): Command {
  const command = new Command('list').description('show the faults in force');
  return sandboxAction(command, environment, 'fault list', async ({ client }) => {
    const json = await client.get('/sandbox/faults');
    const faults = Array.isArray(json.data) ? json.data : [];
    const lines = faults.map((fault) => JSON.stringify(fault));
    return { json, text: lines.length === 0 ? 'no faults' : lines.join('\n'), ok: true };
  });
}

function clearCommand(environment: CommandEnvironment): Command {
  const command = new Command('clear').description('let all be well again');
  return sandboxAction(command, environment, 'fault clear', async ({ client }) => {
    const json = await client.delete('/sandbox/faults');
    return { json, text: `faults cleared: ${json.cleared}`, ok: true };
  });
}

/** `fault add|list|clear`. */
export function faultCommand(environment: CommandEnvironment): Command {
  const command = new Command('fault').description('faults of the stand-in platform');
  for (const part of [addCommand(environment), listCommand(environment), clearCommand(environment)]) {
    command.addCommand(part);
  }
  return command.addHelpText(
    'after',
    '\nExample:\n  npm run sandbox -- fault add media_lookup gone --id 600000000000001',
  );
}
