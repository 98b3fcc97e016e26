import { ALLOWED_LEVELS } from '../../../src/mcp/allowed-levels.ts';
import { type Command, textOf, type Values } from './command.ts';
import { EXIT, Failure, wrongUsage } from './failure.ts';

export const mcp: Command = {
  name: 'mcp',
  summary: 'let AI assistants use the API, by the Model Context Protocol',
  details:
    'Assistants start it and speak to it by standard input and output, with the key of "heliograph login", of HELIOGRAPH_API_KEY or of --key-file. With --http it listens at a port instead, and each request carries the API key of its caller.',
  options: {
    allow: {
      type: 'string',
      value: '<levels>',
      help: `in addition to reading, separated by commas: ${ALLOWED_LEVELS.join(', ')} (endpoints and deliveries)`,
      choices: ALLOWED_LEVELS,
    },
    http: {
      type: 'string',
      value: '<port>',
      help: 'serve HTTP at this port, in place of standard input and output',
    },
    host: { type: 'string', value: '<address>', help: 'with --http: the address, 127.0.0.1 unless set' },
    'allow-host': {
      type: 'string',
      value: '<name>',
      help: 'with --http: a name by which others reach this server; repeat it for several',
      multiple: true,
    },
  },
  examples: ['heliograph mcp --allow send,operate', 'heliograph mcp --http 8765'],
  async run({ account, profile }, _operands, values) {
    const allowed = levelsOf(textOf(values, 'allow'));
    const http = textOf(values, 'http');
    if (http === undefined) {
      const { url, apiKey: key } = profile.account(account);
      const { runStdio } = await import('../../../src/mcp/run-mcp.ts');
      await runStdio({ url, key }, allowed);
      return EXIT.ok;
    }
    const [port, host] = [portOf(http), textOf(values, 'host') ?? '127.0.0.1'];
    const allowedHosts = listOf(values, 'allow-host');
    const url = profile.url(account);
    const { runHttp } = await import('../../../src/mcp/run-mcp.ts');
    await runHttp(url, allowed, { port, host, allowedHosts }).catch((error: Error) => {
      throw new Failure(EXIT.failed, `${host}, port ${port}: ${error.message}`);
    });
    return EXIT.ok;
  },
};

function listOf(values: Values, name: string): readonly string[] {
  const given = values[name];
  return Array.isArray(given) ? given : [];
}

function levelsOf(text = '') {
  const given = text.split(',').filter((one) => one !== '');
  const unknown = given.find((one) => !ALLOWED_LEVELS.some((level) => level === one));
  if (unknown === undefined) return ALLOWED_LEVELS.filter((level) => given.includes(level));
  throw wrongUsage(`--allow takes ${ALLOWED_LEVELS.join(' or ')}, not ${JSON.stringify(unknown)}.`);
}

function portOf(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw wrongUsage('--http must be a port, such as 8765.');
}
