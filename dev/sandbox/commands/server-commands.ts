import { Command, InvalidArgumentError, Option } from 'commander';
import type { RunningServer } from '../upstream-server.ts';
import { type CommandEnvironment, reportingErrors } from './sandbox-action.ts';
import { SandboxCommandError } from './sandbox-client.ts';

type ListenOptions = { host: string; port: number; json?: boolean };
type ServeOptions = ListenOptions & { ingressUrl: string; statusDelayMs?: number };
type ReceiveOptions = ListenOptions & { secretsFile?: string; color: string };

function parseNumber(text: string): number {
  if (!/^\d{1,6}$/.test(text)) {
    throw new InvalidArgumentError('This is not a whole number.');
  }
  return Number(text);
}

function parseUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new InvalidArgumentError('This is not an http address.');
  }
  return text;
}

/** Waits for Ctrl-C, a polite end, or the end of the parent process that started this one with a channel. */
function stopRequested(): Promise<void> {
  return new Promise((resolve) => {
    for (const event of ['SIGINT', 'SIGTERM', 'disconnect']) {
      process.once(event, () => resolve());
    }
  });
}

async function runServer(
  environment: CommandEnvironment,
  what: string,
  options: ListenOptions,
  start: () => Promise<RunningServer>,
): Promise<void> {
  await reportingErrors(environment, options, async () => {
    const server = await start().catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
        const message = `Port ${options.port} of ${options.host} is taken; choose another with --port.`;
        throw new SandboxCommandError('port_taken', message, { cause: error });
      }
      throw error;
    });
    environment.write(
      options.json ? `${JSON.stringify({ url: server.url })}\n` : `${what} listens on ${server.url}\n`,
    );
    await stopRequested();
    await server.close();
  });
}

function withListening(command: Command, defaultPort: number): Command {
  return command
    .option('--host <address>', 'loopback address to listen on', '127.0.0.1')
    .option('--port <number>', 'port to listen on; 0 picks a free one', parseNumber, defaultPort)
    .option('--json', 'print the address as one JSON object');
}

function serveCommand(environment: CommandEnvironment): Command {
  const command = withListening(
    new Command('serve').description('run the stand-in for the upstream platform'),
    8090,
  )
    .requiredOption('--ingress-url <url>', 'where webhooks go, without a path', parseUrl)
    .option('--status-delay-ms <ms>', 'between the statuses of one message', parseNumber)
    .addHelpText('after', '\nThe app secret and the verify token are read from the environment:')
    .addHelpText(
      'after',
      'HELIOGRAPH_UPSTREAM_APP_SECRETS (the first one), HELIOGRAPH_UPSTREAM_VERIFY_TOKEN.',
    )
    .addHelpText('after', '\nExample:\n  npm run sandbox -- serve --ingress-url http://127.0.0.1:8080');
  return command.action(async () => {
    const { host, port, ingressUrl, statusDelayMs, json } = command.opts<ServeOptions>();
    const [appSecret = ''] = (process.env.HELIOGRAPH_UPSTREAM_APP_SECRETS ?? 'test-app-secret').split(',');
    const verifyToken = process.env.HELIOGRAPH_UPSTREAM_VERIFY_TOKEN ?? 'test-verify-token';
    await runServer(environment, 'sandbox platform', { host, port, ...(json ? { json } : {}) }, async () => {
      // Loaded when needed, so that the command line starts fast.
      const { startUpstreamServer } = await import('../upstream-server.ts');
      const delay = statusDelayMs === undefined ? {} : { statusDelayMs };
      return startUpstreamServer({
        host,
        port,
        appSecret,
        verifyToken,
        ingressUrl,
        logLevel: 'warn',
        ...delay,
      });
    });
  });
}

function receiveCommand(environment: CommandEnvironment): Command {
  const command = withListening(new Command('receive').description('run the sample tenant server'), 8091)
    .option('--secrets-file <file>', 'JSON {"secrets":["whsec_…"]}; read again when it changes')
    .addOption(
      new Option('--color <when>', 'colour the lines').choices(['auto', 'always', 'never']).default('auto'),
    )
    .addHelpText('after', '\nExample:\n  npm run sandbox -- receive --secrets-file secrets.json');
  return command.action(async () => {
    const { host, port, secretsFile, color, json } = command.opts<ReceiveOptions>();
    const useColor = color === 'auto' ? process.stdout.isTTY === true : color === 'always';
    await runServer(environment, 'sample tenant', { host, port, ...(json ? { json } : {}) }, async () => {
      const { startReceiver } = await import('../receiver/receiver.ts');
      const file = secretsFile === undefined ? {} : { secretsFile };
      return startReceiver({ host, port, useColor, ...file });
    });
  });
}

/** The commands that run the two servers in the foreground. */
export function serverCommands(environment: CommandEnvironment): Command[] {
  return [serveCommand(environment), receiveCommand(environment)];
}
