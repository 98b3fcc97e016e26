import { Command, Option } from 'commander';
import { readFileOrExplain } from './media-file.ts';
import { type CommandEnvironment, sandboxAction, webhookOutcome } from './sandbox-action.ts';
import { SandboxCommandError } from './sandbox-client.ts';

type BodyOptions = { signature: string };

function bodyCommand(
  name: string,
  description: string,
  environment: CommandEnvironment,
  mustBeJson: boolean,
): Command {
  const command = new Command(name)
    .description(description)
    .argument('<file>', 'the file')
    .addOption(
      new Option('--signature <form>', 'how it is signed')
        .choices(['valid', 'wrong', 'missing'])
        .default('valid'),
    );
  const example = mustBeJson
    ? 'fixture test/fixtures/upstream/in_text.json'
    : 'raw body.bin --signature wrong';
  return sandboxAction<BodyOptions>(command, environment, example, async ({ client, args, options }) => {
    const file = args[0] ?? '';
    const bytes = await readFileOrExplain(file);
    if (mustBeJson) {
      try {
        JSON.parse(bytes.toString('utf8'));
      } catch (error) {
        throw new SandboxCommandError('invalid_json', `${file} is not JSON; use raw to send it anyway.`, {
          cause: error,
        });
      }
    }
    const request = { bodyBase64: bytes.toString('base64'), signature: options.signature };
    return webhookOutcome(`${file} (${bytes.length} bytes)`, await client.post('/sandbox/webhooks', request));
  });
}

function verifyCommand(environment: CommandEnvironment): Command {
  const command = new Command('verify').description('do the verification handshake of the platform');
  return sandboxAction(command, environment, 'verify', async ({ client }) => {
    const answer = await client.post('/sandbox/verify', {});
    const ok = answer.verified === true;
    const text = `${ok ? 'verified' : 'NOT verified'}: answered ${answer.status} in ${answer.ms} ms`;
    return { json: answer, text, ok };
  });
}

/** The commands that send given bytes, and the handshake. */
export function bodyCommands(environment: CommandEnvironment): Command[] {
  return [
    bodyCommand('fixture', 'send a file with a webhook body, signed', environment, true),
    bodyCommand('raw', 'send the exact bytes of any file, signed', environment, false),
    verifyCommand(environment),
  ];
}
