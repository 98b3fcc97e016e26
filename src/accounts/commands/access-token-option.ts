import { type Command, Option } from 'commander';

/** Longer than any token: whoever pipes the wrong file is told so instead of waiting. */
const MAX_INPUT_CHARS = 65_536;

export type AccessTokenOptions = { accessToken?: string; accessTokenStdin?: boolean };

/** Adds the two ways of giving an upstream access token. */
export function withAccessToken(command: Command): Command {
  return command
    .addOption(new Option('--access-token-stdin', 'read the upstream access token from standard input'))
    .addOption(
      new Option(
        '--access-token <token>',
        'the upstream access token; other users of this machine can see it while the command runs',
      ).conflicts('accessTokenStdin'),
    );
}

/** The access token as it was given; null when none was. */
export async function givenAccessToken(options: AccessTokenOptions): Promise<string | null> {
  if (options.accessTokenStdin !== true) return options.accessToken ?? null;
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk;
    if (text.length > MAX_INPUT_CHARS) break;
  }
  return text;
}
