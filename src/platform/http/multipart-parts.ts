/** One `boundary`, written plainly: parsers differ in how they read anything else. */
const BOUNDARY =
  /^(?:(?!boundary).)*;[ \t]*boundary=(?:"([^"\\]{1,70})"|([^\s;"\\]{1,70}))(?:(?!boundary).)*$/i;

/** The line that begins each part of a form with files, and its end. Null: the Content-Type does not say it plainly. */
export function delimiterOf(contentType: string): string | null {
  const [, quoted, plain] = BOUNDARY.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  return boundary === undefined ? null : `--${boundary}`;
}

/** Where a delimiter stands in some bytes, up to `most` places: each part costs its parser as much as many bytes of a file. */
export function delimitersIn(bytes: Buffer, delimiter: string, most: number): number[] {
  const places: number[] = [];
  for (
    let at = bytes.indexOf(delimiter);
    at !== -1 && places.length < most;
    at = bytes.indexOf(delimiter, at + 1)
  )
    places.push(at);
  return places;
}
