/** Lines of `label  value`, the values below each other. A null value is shown as a dash. */
export function alignedFields(fields: readonly (readonly [string, unknown])[]): string {
  const width = Math.max(0, ...fields.map(([label]) => label.length));
  return fields.map(([label, value]) => `${label.padEnd(width)}  ${shownValue(value)}`).join('\n');
}

/** A table with a heading; `empty` takes its place when there are no rows. */
export function alignedTable(
  headings: readonly string[],
  rows: readonly (readonly unknown[])[],
  empty: string,
): string {
  if (rows.length === 0) return empty;
  const lines = [[...headings], ...rows.map((row) => row.map(shownValue))];
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** On one line and without control or direction characters: what others wrote must not steer a terminal. */
function shownValue(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  if (value instanceof Date) return value.toISOString();
  const text = Array.isArray(value) ? value.join(', ') : String(value);
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim() || '-';
}
