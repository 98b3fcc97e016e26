import { posix } from 'node:path';
import ts from 'typescript-compiler-api';

/** A name of a file: what it stands for there, or where it is imported from. A name of two blocks stands for both. */
type Named = { code: ts.Node[] } | { from: string; name: string };

/** The source of a test or of a kit, with the names of its module and of its blocks. */
type TestSource = { path: string; file: ts.SourceFile; names: ReadonlyMap<string, Named> };

/** What a name stands for: code of a test or kit, or something of a file that is no test. */
export type Found = { path: string; name: string; code: readonly ts.Node[] };

export type TestSources = ReadonlyMap<string, TestSource>;

export function parseSource(path: string, text: string): TestSource {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const names = new Map<string, Named>();
  const add = (name: string, code: ts.Node) => {
    const known = names.get(name);
    names.set(name, { code: [...(known !== undefined && 'code' in known ? known.code : []), code] });
  };
  for (const statement of statementsOf(file)) {
    if (ts.isFunctionDeclaration(statement)) add(statement.name?.text ?? '', statement);
    if (ts.isImportDeclaration(statement)) {
      for (const [name, imported] of importsOf(path, statement)) names.set(name, imported);
    }
    if (!ts.isVariableStatement(statement)) continue;
    for (const { name, initializer } of statement.declarationList.declarations) {
      if (initializer === undefined) continue;
      for (const one of namesIn(name)) add(one, initializer);
    }
  }
  return { path, file, names };
}

function namesIn(name: ts.BindingName): string[] {
  if (ts.isIdentifier(name)) return [name.text];
  return name.elements.flatMap((element) => (ts.isBindingElement(element) ? namesIn(element.name) : []));
}

function importsOf(path: string, { importClause, moduleSpecifier }: ts.ImportDeclaration): [string, Named][] {
  const bindings = importClause?.namedBindings;
  if (bindings === undefined || !ts.isNamedImports(bindings)) return [];
  const { text } = moduleSpecifier as ts.StringLiteral;
  const from = text.startsWith('.') ? posix.join(posix.dirname(path), text) : text;
  return bindings.elements.map(({ name, propertyName }) => [
    ...([name.text, { from, name: (propertyName ?? name).text }] as const),
  ]);
}

/** The statements of a module and those of its blocks. */
export function statementsOf(file: ts.Node): ts.Statement[] {
  const own = ts.isSourceFile(file) || ts.isBlock(file) ? [...file.statements] : [];
  return own.flatMap((statement) => {
    const call = callOf(statement);
    return call?.root === 'describe' ? [statement, ...statementsOf(bodyOf(call.callback))] : [statement];
  });
}

/** `test`, `describe.each(…)` or `beforeAll` as a statement; `isEach`: for each of a table. */
export type Call = { root: string; isEach: boolean; callback: ts.Node | undefined; node: ts.CallExpression };

export function callOf(statement: ts.Statement): Call | null {
  if (!ts.isExpressionStatement(statement) || !ts.isCallExpression(statement.expression)) return null;
  const { expression: node } = statement;
  let root: ts.Node = node.expression;
  while (ts.isCallExpression(root) || ts.isPropertyAccessExpression(root)) root = root.expression;
  const isEach = /\.(each|for)\b/.test(node.expression.getText());
  return { root: root.getText(), isEach, callback: node.arguments.find(isFunction), node };
}

export function isFunction(node: ts.Node): node is ts.ArrowFunction | ts.FunctionExpression {
  return ts.isArrowFunction(node) || ts.isFunctionExpression(node);
}

function bodyOf(callback: ts.Node | undefined): ts.Node {
  return (callback as ts.ArrowFunction).body;
}

/** What an identifier of a file stands for, if it is no name of a property, a parameter or a package. */
export function resolve(sources: TestSources, path: string, identifier: ts.Identifier): Found | null {
  const { parent, text } = identifier;
  if (ts.isPropertyAccessExpression(parent) && parent.name === identifier) return null;
  if (ts.isPropertyAssignment(parent) && parent.name === identifier) return null;
  return find(sources, path, text);
}

function find(sources: TestSources, path: string, name: string): Found | null {
  const named = sources.get(path)?.names.get(name);
  if (named === undefined) return null;
  if ('code' in named) return { path, name, code: named.code };
  return find(sources, named.from, named.name) ?? { path: named.from, name: named.name, code: [] };
}
