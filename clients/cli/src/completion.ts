import { type Command, optionsOf } from './command.ts';
import { wrongUsage } from './failure.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** A script that completes commands, options and their values. */
export function completionScript(shell: string, commands: readonly Command[]): string {
  if (shell === 'bash') return bash(commands);
  if (shell === 'zsh') return zsh(commands);
  if (shell === 'fish') return fish(commands);
  throw wrongUsage(`Completion is for ${SHELLS.join(', ')}.`);
}

function bash(commands: readonly Command[]): string {
  const cases = commands.map((command) => {
    const words = [...Object.keys(optionsOf(command)).map((name) => `--${name}`), ...(command.choices ?? [])];
    return `    ${command.name}) words="${words.join(' ')}" ;;`;
  });
  return `_heliograph() {
  local words
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
    *) words="" ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && words="${commands.map(({ name }) => name).join(' ')} --help --version"
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _heliograph heliograph`;
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

function zsh(commands: readonly Command[]): string {
  const plain = (text: string) => text.replace(/[[\]:]/g, ' ');
  const cases = commands.map((command) => {
    const specs = Object.entries(optionsOf(command)).map(([name, { type, help, choices }]) => {
      const value =
        type === 'boolean' ? '' : `:${name}:${choices === undefined ? '_default' : `(${choices.join(' ')})`}`;
      return quoted(`--${name}[${plain(help)}]${value}`);
    });
    const operand =
      command.choices === undefined ? `'*:: :_default'` : quoted(`1: :(${command.choices.join(' ')})`);
    return `    ${command.name}) _arguments ${[...specs, operand].join(' ')} ;;`;
  });
  const names = commands.map(({ name, summary }) => `    ${quoted(`${name}:${plain(summary)}`)}`);
  return `#compdef heliograph
_heliograph() {
  local -a commands
  commands=(
${names.join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${cases.join('\n')}
  esac
}
compdef _heliograph heliograph`;
}

function fish(commands: readonly Command[]): string {
  const lines = commands.flatMap((command) => {
    const { name, summary, choices } = command;
    const here = `-n '__fish_seen_subcommand_from ${name}'`;
    return [
      `complete -c heliograph -f -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
      ...(choices === undefined ? [] : [`complete -c heliograph -f ${here} -a ${quoted(choices.join(' '))}`]),
      ...Object.entries(optionsOf(command)).map(
        ([option, { type, help }]) =>
          `complete -c heliograph ${here} -l ${option}${type === 'string' ? ' -r' : ''} -d ${quoted(help)}`,
      ),
    ];
  });
  return lines.join('\n');
}
