import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from './stack.ts';

/**
 * The command by which docs/tenants/receivers.md starts a receiver. Throws when the page does not show the receiver as it is in
 * examples/receivers.
 */
export function receiverCommand(name: string): string {
  const document = readFileSync(join(PROJECT, 'docs/tenants/receivers.md'), 'utf8');
  const shown = [...document.matchAll(/^<!-- receiver: (\S+) -->\n```\w+\n(.*?)^```$/gms)];
  const [, path = '', code = ''] = shown.find(([, file = '']) => file.startsWith(`${name}/`)) ?? [];
  if (path === '') throw new Error(`receivers.md does not show ${name}`);
  const file = readFileSync(join(PROJECT, 'examples', 'receivers', path), 'utf8');
  if (file !== code) throw new Error(`receivers.md shows another ${path}`);
  const [, command] =
    new RegExp(`^<!-- start: ${name} -->\\n\`\`\`sh\\n(.*?)\`\`\``, 'ms').exec(document) ?? [];
  if (command === undefined) throw new Error(`receivers.md has no command that starts ${name}`);
  return command;
}
