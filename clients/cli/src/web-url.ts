/** A URL of the web; null when the text is none. `URL.parse` is too new for the oldest Node.js that users may have. */
export function webUrl(text: string): URL | null {
  try {
    const url = new URL(text);
    return /^https?:$/.test(url.protocol) ? url : null;
  } catch {
    return null;
  }
}
