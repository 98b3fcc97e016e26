/** One figure with its target; null: there is none to meet. */
export type Row = { scenario: string; what: string; figure: string; target: string; isMet: boolean | null };

const HEADINGS = { scenario: 'scenario', what: 'what', figure: 'figure', target: 'target', met: 'met' };

/** All figures as one table. */
export function reportText(rows: readonly Row[]): string {
  const lines = [HEADINGS, ...rows.map((row) => ({ ...row, met: metText(row.isMet) }))];
  const width = (name: keyof typeof HEADINGS) => Math.max(...lines.map((line) => line[name].length));
  const columns = (['scenario', 'what', 'figure', 'target'] as const).map(
    (name) => [name, width(name)] as const,
  );
  return lines
    .map((line) => `${columns.map(([name, size]) => line[name].padEnd(size)).join('  ')}  ${line.met}\n`)
    .join('');
}

function metText(isMet: boolean | null): string {
  if (isMet === null) return '';
  return isMet ? 'yes' : 'NO';
}
