/** A line of one or both texts. */
export type DiffLine = { kind: 'same' | 'removed' | 'added'; text: string };

/** More lines than this are compared one by one, in place. */
const MAX_LINES = 2_000;

/** The lines of two texts side by side: those that both have in the longest common order, and the others. */
export function diffLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  if (before.length > MAX_LINES || after.length > MAX_LINES) return inPlace(before, after);
  const columns = after.length + 1;
  // How long the common part of the ends is that begin at these lines.
  const lengths = new Uint16Array((before.length + 1) * columns);
  const at = (i: number, j: number) => lengths[i * columns + j] ?? 0;
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      const longer = Math.max(at(i + 1, j), at(i, j + 1));
      lengths[i * columns + j] = before[i] === after[j] ? at(i + 1, j + 1) + 1 : longer;
    }
  }
  const lines: DiffLine[] = [];
  for (let i = 0, j = 0; i < before.length || j < after.length; ) {
    const [one, other] = [before[i], after[j]];
    if (one !== undefined && one === other) {
      lines.push({ kind: 'same', text: one });
      i += 1;
      j += 1;
    } else if (one !== undefined && (other === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ kind: 'removed', text: one });
      i += 1;
    } else {
      lines.push({ kind: 'added', text: other ?? '' });
      j += 1;
    }
  }
  return lines;
}

function inPlace(before: readonly string[], after: readonly string[]): DiffLine[] {
  const removed = before.map((text): DiffLine => ({ kind: 'removed', text }));
  return [...removed, ...after.map((text): DiffLine => ({ kind: 'added', text }))];
}

/** The lines that differ, each with up to `context` lines that do not; empty when the bodies are the same. */
export function diffBodies(before: Buffer, after: Buffer, context = 2): DiffLine[] {
  const lines = diffLines(linesOf(before), linesOf(after));
  return lines.filter((_, index) =>
    lines.slice(Math.max(0, index - context), index + context + 1).some(({ kind }) => kind !== 'same'),
  );
}

/** JSON with each member in a line, so that a member that differs is seen. Numbers stay as they are written. */
function linesOf(body: Buffer): string[] {
  const lines: string[] = [];
  let line = '';
  let depth = 0;
  const end = (): void => {
    if (line.trim() !== '') lines.push('  '.repeat(depth) + line.trim());
    line = '';
  };
  for (const token of body.toString('utf8').match(/"(?:[^"\\]|\\.)*"|[{}[\],]|[^"{}[\],]+/gs) ?? []) {
    if (token === '}' || token === ']') {
      end();
      depth = Math.max(0, depth - 1);
    }
    line += token;
    if ('{[,'.includes(token)) end();
    if (token === '{' || token === '[') depth += 1;
  }
  end();
  return lines;
}
