import { globSync, readFileSync } from 'node:fs';
import ts from 'typescript-compiler-api';
import { describe, expect, test } from 'vitest';

/**
 * Whoever sends us a text can make it long and monotonous. An expression that begins anew at each of its characters
 * takes time by the square of its length, and the whole process stands still meanwhile.
 */

const SOURCE = new URL('../../../src/', import.meta.url);

/** Where each expression of the source stands. */
function expressionsOfSource(): Map<string, string> {
  const found = new Map<string, string>();
  for (const file of globSync('**/*.ts', { cwd: SOURCE })) {
    const source = ts.createSourceFile(
      file,
      readFileSync(new URL(file, SOURCE), 'utf8'),
      ts.ScriptTarget.Latest,
    );
    const visit = (node: ts.Node): void => {
      if (ts.isRegularExpressionLiteral(node)) found.set(node.text, file);
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
  return found;
}

function parsed(literal: string): { source: string; flags: string } {
  const end = literal.lastIndexOf('/');
  return { source: literal.slice(1, end), flags: literal.slice(end + 1) };
}

const isUnbounded = ({ source }: { source: string }) =>
  /[*+]|\{\d+,\}/.test(source.replace(/\\./g, '').replace(/\[[^\]]*\]/g, ''));

/** What a hostile text repeats: characters that the expression names, pairs of them, and its words. */
function pumpsOf(source: string): string[] {
  const named = source.replace(/\\[a-zA-Z](?:\{[^}]*\})?/g, '').replace(/\\/g, '');
  const characters = [...new Set([' ', '\t', 'a', '0', '/', '.', ...named])].slice(0, 24);
  const pairs = characters.flatMap((first) => characters.map((second) => first + second));
  return [...characters, ...pairs, ...(named.match(/[\w -]{3,64}/g) ?? [])];
}

const QUICK = { chars: 4_000, cpuMs: 1 };
const SURE = { chars: 12_000, cpuMs: 10 };

function cpuMsOf(expression: RegExp, text: string): number {
  const before = process.cpuUsage();
  text.replace(expression, '');
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** The repeated text with which an expression takes time by the square of the length; null: none was found. */
function slowPumpOf(expression: RegExp): string | null {
  const isSlow = (pump: string, { chars, cpuMs }: typeof QUICK) =>
    ['', 'x'].some((before) => {
      const text = `${before}${pump.repeat(chars / pump.length)}\u0000${pump}`;
      // Something else of this process may have run meanwhile.
      return cpuMsOf(expression, text) > cpuMs && cpuMsOf(expression, text) > cpuMs;
    });
  return pumpsOf(expression.source).find((pump) => isSlow(pump, QUICK) && isSlow(pump, SURE)) ?? null;
}

/** Files that make expressions of texts, which nothing here sees. */
function filesThatMakeExpressions(): string[] {
  return globSync('**/*.ts', { cwd: SOURCE }).filter((file) =>
    /\bRegExp\(/.test(readFileSync(new URL(file, SOURCE), 'utf8')),
  );
}

describe('an expression', () => {
  test('is written as one, so that it is tried here', () => {
    expect(filesThatMakeExpressions()).toEqual([]);
  });

  const unbounded = [...expressionsOfSource()].filter(([literal]) => isUnbounded(parsed(literal)));

  test.each(unbounded)('takes time in proportion to a long text: %s in %s', (literal) => {
    const { source, flags } = parsed(literal);
    expect(slowPumpOf(new RegExp(source, flags))).toBeNull();
  });

  test.each([/\s+$/, /\/+$/, /\s*;/, /(?:ab)+$/, /\b[a-z][a-z+]*:/gi])(
    'that begins anew at each character is found: %s',
    (expression) => {
      expect(slowPumpOf(expression)).not.toBeNull();
    },
  );
});
