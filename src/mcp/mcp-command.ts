import { Command, InvalidArgumentError, Option } from 'commander';
import { ALLOWED_LEVELS, type AllowedLevel } from './allowed-levels.ts';

type Options = {
  url?: string;
  keyFile?: string;
  allow: AllowedLevel[];
  http?: number | true;
  host: string;
  allowHost: string[];
};

const DEFAULT_PORT = 8765;

export function mcpCommand(): Command {
  return new Command('mcp')
    .description('let AI assistants use the API of a gateway, by the Model Context Protocol')
    .option('--url <url>', 'base URL of the gateway; otherwise HELIOGRAPH_URL')
    .option('--key-file <path>', 'a file with the API key (ck_…); otherwise HELIOGRAPH_API_KEY')
    .addOption(
      new Option(
        '--allow <level...>',
        'in addition to reading: send messages; operate endpoints and deliveries',
      )
        .choices(ALLOWED_LEVELS)
        .default([]),
    )
    .option('--http [port]', `serve HTTP (port ${DEFAULT_PORT}) in place of stdin and stdout`, parsePort)
    .option('--host <address>', 'with --http: the address to listen at', '127.0.0.1')
    .option('--allow-host <name...>', 'with --http: names by which others reach this server', [])
    .action(async (options: Options) => {
      const { http, host, allowHost: allowedHosts } = options;
      const { runMcp } = await import('./run-mcp.ts');
      const port = http === true ? DEFAULT_PORT : http;
      process.exitCode = await runMcp(process.env, {
        url: options.url,
        keyFile: options.keyFile,
        allowed: options.allow,
        http: port === undefined ? null : { port, host, allowedHosts },
      });
    });
}

function parsePort(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) throw new InvalidArgumentError('Give a port.');
  return Number(text);
}
