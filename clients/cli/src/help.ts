import { type Command, type OptionSpec, optionsOf } from './command.ts';

const WIDTH = 100;

/** The help of the tool: every command in a line. */
export function generalHelp(groups: readonly (readonly [string, readonly Command[]])[]): string {
  const names = groups.flatMap(([, commands]) => commands.map(usageOf));
  const width = Math.max(...names.map(({ length }) => length));
  const parts = groups.map(([title, commands]) => {
    const lines = commands.map((command) => `  ${usageOf(command).padEnd(width)}  ${command.summary}`);
    return `${title}\n${lines.join('\n')}`;
  });
  return [
    'heliograph: webhooks of Heliograph on your machine.',
    'Usage: heliograph <command> [options]',
    ...parts,
    'heliograph <command> --help shows the options of a command.\nExit codes: 0 success, 1 a check or delivery failed, 2 wrong command line, 3 API key, 4 service unreachable, 5 refused.',
  ].join('\n\n');
}

function usageOf({ name, operands }: Command): string {
  return operands === undefined ? name : `${name} ${operands}`;
}

/** The help of a command. */
export function commandHelp(command: Command): string {
  const { summary, details, examples = [] } = command;
  const parts = [`heliograph ${usageOf(command)} [options]: ${summary}`];
  if (details !== undefined) parts.push(wrapped(details, ''));
  parts.push(`Options\n${optionLines(optionsOf(command))}`);
  if (examples.length > 0) parts.push(`Examples\n${examples.map((text) => `  ${text}`).join('\n')}`);
  return parts.join('\n\n');
}

function optionLines(options: Readonly<Record<string, OptionSpec>>): string {
  const rows = Object.entries(options).map(
    ([name, { value, help }]) => [`--${name}${value === undefined ? '' : ` ${value}`}`, help] as const,
  );
  const width = Math.max(...rows.map(([flags]) => flags.length));
  return rows
    .map(([flags, help]) => `  ${flags.padEnd(width)}  ${wrapped(help, ' '.repeat(width + 4))}`)
    .join('\n');
}

function wrapped(text: string, indent: string): string {
  let line = '';
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + word.length + 1 > WIDTH - indent.length) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join(`\n${indent}`);
}
