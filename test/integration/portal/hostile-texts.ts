/** Texts that would do something if a page took them for markup. */
export const HOSTILE_TEXTS = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "'><svg/onload=alert(1)>",
  '</textarea><script>alert(1)</script>',
  '</title><script>alert(1)</script>',
  '<!--<script>alert(1)//-->',
  '{{constructor.constructor("alert(1)")()}}',
  'javascript:alert(1)',
  '&lt;script&gt;alert(1)&lt;/script&gt;',
  '\u202egnp.exe',
  '<iframe srcdoc="<script>alert(1)</script>">',
] as const;

/** What of a page would run or load something that is not ours; values in quotes are only values. */
export function liveMarkup(page: string): string[] {
  const tags = page.replaceAll(/="[^"<>]*"/g, '=""');
  const handlers = tags.match(/<[^<>]*\son\w+\s*=[^<>]*>/gi) ?? [];
  const elements = page.match(
    /<(?:script|img)(?![^>]*src="\/(?:portal\/assets|received_media)\/)[^>]*>|<iframe[^>]*>|<svg\/[^>]*>/gi,
  );
  return [...handlers, ...(elements ?? [])];
}
