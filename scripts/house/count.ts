import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import ts from 'typescript-compiler-api';

/** A source file, `path` from the project's folder. */
export type Source = { path: string; text: string };

/** Reads the files. */
export function readSources(paths: readonly string[]): Source[] {
  return paths.map((path) => ({ path, text: readFileSync(path, 'utf8') }));
}

/** All lines of the files, blank ones and comments included. */
export function lineCount(sources: readonly Source[]): number {
  return sources.reduce((total, { text }) => total + linesOf(text), 0);
}

function linesOf(text: string): number {
  return text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
}

/** The folder with the most files directly in it. */
export function fullestFolder(sources: readonly Source[]): Largest {
  const counts = new Map<string, number>();
  for (const { path } of sources) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  return largest([...counts].map(([name, value]) => ({ name, value })));
}

/** What is largest, and how large. */
export type Largest = { name: string; value: number };

/** The file with the most lines. */
export function longestFile(sources: readonly Source[]): Largest {
  return largest(sources.map(({ path, text }) => ({ name: path, value: linesOf(text) })));
}

/** The function with the most lines that are not blank, from its first line to its closing bracket. */
export function longestFunction(sources: readonly Source[]): Largest {
  return largest(sources.filter(({ path }) => path.endsWith('.ts')).flatMap(functionsOf));
}

function functionsOf({ path, text }: Source): Largest[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found: Largest[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const lines = node.getText(file).split('\n');
      const { line } = file.getLineAndCharacterOfPosition(node.getStart(file));
      found.push({
        name: `${path}:${line + 1}`,
        value: lines.filter((each) => each.trim() !== '').length,
      });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** The places of each feature: the folders below src. The door `src/api` counts once, with the pages of its portal: design and docs/architecture.md list it as one row. */
export function featurePlaces(
  sources: readonly Source[],
  features: Readonly<Record<string, RegExp>>,
): { name: string; places: string[] }[] {
  const places = new Map(Object.keys(features).map((name) => [name, new Set<string>()]));
  for (const { path } of sources) {
    const feature = featureOf(path, features);
    if (feature !== null) places.get(feature)?.add(placeOf(path));
  }
  return [...places].map(([name, found]) => ({ name, places: [...found].sort() }));
}

/** The feature whose stem stands first in the path; the longer one of two at one position. */
function featureOf(path: string, features: Readonly<Record<string, RegExp>>): string | null {
  let best: { name: string; at: number; length: number } | null = null;
  for (const [name, stem] of Object.entries(features)) {
    const match = stem.exec(path);
    if (match === null) continue;
    const { index: at } = match;
    const [{ length }] = match;
    if (best === null || at < best.at || (at === best.at && length > best.length))
      best = { name, at, length };
  }
  return best?.name ?? null;
}

function placeOf(path: string): string {
  return path.split('/')[1] ?? '';
}

function largest(all: readonly Largest[]): Largest {
  return all.reduce((best, each) => (each.value > best.value ? each : best), { name: '-', value: 0 });
}

/** The files that a module imports values from, and so on, within `folder`; the module itself included. */
export function valueImports(entry: string, folder: string): string[] {
  const seen = new Set<string>();
  const open = [entry];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (seen.has(path) || !path.startsWith(folder)) continue;
    seen.add(path);
    const imports = readFileSync(path, 'utf8').matchAll(
      /^(?:import|export) (?!type\b)[^;]*?from '(\.[^']+)'/gm,
    );
    for (const [, target = ''] of imports) open.push(new URL(target, `file:///${path}`).pathname.slice(1));
  }
  return [...seen];
}
