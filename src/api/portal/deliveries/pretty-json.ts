const MAX_INDENT = 12;

/**
 * JSON with line breaks, every value spelled as it was: going through JSON.parse would round large numbers. What is
 * no JSON comes back with odd line breaks, and never throws.
 */
export function prettyJson(text: string): string {
  let shown = '';
  let depth = 0;
  const newLine = () => `\n${'  '.repeat(Math.min(depth, MAX_INDENT))}`;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/gs)) {
    if (token === '{' || token === '[') {
      depth += 1;
      shown += `${token}${newLine()}`;
    } else if (token === '}' || token === ']') {
      depth = Math.max(0, depth - 1);
      shown = /[{[]\s*$/.test(shown) ? `${shown.trimEnd()}${token}` : `${shown}${newLine()}${token}`;
    } else if (token === ',') shown += `,${newLine()}`;
    else if (token === ':') shown += ': ';
    else shown += token;
  }
  return shown;
}
