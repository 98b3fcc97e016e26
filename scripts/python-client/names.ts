/** Words that cannot be names in Python. */
const KEYWORDS = new Set(
  `False None True and as assert async await break class continue def del elif else except finally for from global if import in
   is lambda nonlocal not or pass raise return try while with yield`.split(/\s+/),
);

/** `serviceMessageId` is `service_message_id`; `from` is `from_`. */
export function snakeCase(name: string): string {
  const snake = name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, '_').toLowerCase();
  return KEYWORDS.has(snake) ? `${snake}_` : snake;
}

/** `service_message_id` and `serviceMessageId` are `ServiceMessageId`. */
export function pascalCase(name: string): string {
  return name.replaceAll(/(?:^|[_.-])([a-z0-9])/gi, (_all, letter: string) => letter.toUpperCase());
}

export function isName(name: string): boolean {
  return /^[a-z_]\w*$/i.test(name) && !KEYWORDS.has(name);
}

/** A text as Python writes it. */
export function quoted(text: string): string {
  return JSON.stringify(text);
}

/** A docstring in one piece, at a depth. */
export function docstring(text: string, indent: string): string {
  const safe = text.trim().replaceAll('\\', '\\\\').replaceAll('"""', "'''").replace(/"$/, '" ');
  const lines = safe.split('\n').map((line, n) => (n === 0 || line === '' ? line : `${indent}${line}`));
  const end = lines.length > 1 ? `\n${indent}` : '';
  return `${indent}"""${lines.join('\n')}${end}"""`;
}
