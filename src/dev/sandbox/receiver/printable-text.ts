/**
 * Text that is safe to print on a terminal: without control and direction characters, on one line, at
 * most maxCharacters long.
 */
export function printableText(text: string, maxCharacters = 80): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim();
  const characters = [...clean];
  return characters.length > maxCharacters ? `${characters.slice(0, maxCharacters - 1).join('')}…` : clean;
}
