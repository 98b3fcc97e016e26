const MAX_INDENT = 12;

const TOKEN = /"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/gs;

/**
 * JSON with line breaks, every value spelled as it was: going through JSON.parse would round large numbers. What is
 * no JSON comes back with odd line breaks, and never throws. Takes time in proportion to the text.
 */
export function prettyJson(text: string): string {
  const pieces: string[] = [];
  let depth = 0;
  let before = '';
  for (const [token] of text.matchAll(TOKEN)) {
    const isOpened = before === '{' || before === '[';
    const closes = token === '}' || token === ']';
    if (closes) depth = Math.max(0, depth - 1);
    const breaks = closes ? !isOpened : isOpened || before === ',';
    if (breaks) pieces.push(`\n${'  '.repeat(Math.min(depth, MAX_INDENT))}`);
    if (token === '{' || token === '[') depth += 1;
    pieces.push(token === ':' ? ': ' : token);
    before = token;
  }
  return pieces.join('');
}
