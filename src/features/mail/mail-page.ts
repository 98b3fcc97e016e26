/** A simple HTML e-mail around paragraphs, which are HTML. */
export function mailPage(body: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"></head>
<body style="font-family: sans-serif; line-height: 1.5; max-width: 40rem">
${body}
</body></html>
`;
}

/** A link; both its address and its text are plain text. */
export function mailLink(url: string, text: string): string {
  return `<a href="${mailText(url)}">${mailText(text)}</a>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function mailText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
