import ts from 'typescript-compiler-api';
import {
  type Call,
  callOf,
  type Found,
  isFunction,
  resolve,
  statementsOf,
  type TestSources,
} from './test-sources.ts';

/** Functions of the product that add a tenant, or what a test could change of one. */
const MAKERS = new Set([
  ...['insertTenant', 'saveWaba', 'insertApiKey', 'insertEndpoint', 'addEndpoint', 'insertUser'],
  ...['inviteUser', 'publishEvents', 'setOperationsUrl', 'requestKey'],
]);

/** The accounts that every database of a kit has. */
const FIXTURE_ID = /\b(90000000000(0101|0202)|80000000000(0111|0112|0221))\b/;

/** Each body in there is of these accounts. */
const FIXTURE_BODY = 'fixtureBody';

/** The bodies in there are sent to another tenant. */
const FIXTURE_BODY_TO = 'fixtureBodyTo';

const OPENER = 'createTestDatabase';
const SEED = 'seedFixtureAccounts';

/** What code does, with all that it calls: opens a database, adds to a tenant, names the fixtures' accounts. */
type Facts = { opens: boolean; makes: Set<string>; names: Set<string> };

const noFacts = (): Facts => ({ opens: false, makes: new Set(), names: new Set() });

/** Why the tests of files share a tenant, by the path of the file; a file is not in it where they do not. */
export function sharedTenants(
  sources: TestSources,
  paths: Iterable<string> = sources.keys(),
): Map<string, string> {
  const look = makeLook(sources);
  const found = new Map<string, string>();
  for (const path of paths) {
    const problem = path.endsWith('.test.ts') ? problemOf(sources, look, path) : null;
    if (problem !== null) found.set(path, problem);
  }
  return found;
}

type Look = (path: string, code: readonly ts.Node[]) => Facts;

/** One test, or those of a table, which count as two. */
type Part = { facts: Facts; count: number };

function problemOf(sources: TestSources, look: Look, path: string): string | null {
  const source = sources.get(path);
  if (source === undefined) return null;
  const calls = statementsOf(source.file).flatMap((statement) => callOf(statement) ?? []);
  const isInTable = calls.some(({ root, isEach }) => root === 'describe' && isEach);
  const tests: Part[] = calls
    .filter(({ root }) => root === 'test' || root === 'it')
    .map(({ node, isEach }) => ({ facts: look(path, [node]), count: isEach || isInTable ? 2 : 1 }));
  if (total(tests) < 2) return null;
  const shared = look(path, [...sharedCode(source.file), ...calls.filter(isShared).map(({ node }) => node)]);
  if (!shared.opens) return null;
  const [made] = shared.makes;
  if (made !== undefined) return `${made} for all of its tests`;
  const before = look(
    path,
    calls.filter(({ root }) => root === 'beforeEach').map(({ node }) => node),
  );
  const naming = tests.filter(({ facts }) => !facts.opens && (facts.names.size > 0 || before.names.size > 0));
  if (total(naming) < 2) return null;
  const names = new Set([...before.names, ...naming.flatMap(({ facts }) => [...facts.names])]);
  return `more than one test names ${[...names].toSorted().join(', ')}`;
}

const total = (parts: readonly Part[]) => parts.reduce((sum, { count }) => sum + count, 0);

/** Calls whose effects all tests of the file see: `beforeAll`, and kits that register it. */
const isShared = ({ root }: Call) =>
  !['describe', 'test', 'it', 'beforeEach', 'afterEach', 'afterAll'].includes(root);

/** Values of the module and its blocks, which are made once. */
function sharedCode(file: ts.SourceFile): ts.Node[] {
  const declared = statementsOf(file).flatMap((statement) =>
    ts.isVariableStatement(statement) ? [...statement.declarationList.declarations] : [],
  );
  return declared.flatMap(({ initializer }) =>
    initializer === undefined || isFunction(initializer) ? [] : [initializer],
  );
}

function makeLook(sources: TestSources): Look {
  const known = new Map<ts.Node, Facts>();
  const factsOf = (path: string, node: ts.Node): Facts => {
    const facts = known.get(node) ?? noFacts();
    if (known.has(node)) return facts;
    known.set(node, facts);
    // The defaults of parameters are looked at where the function is called.
    visit(path, isCode(node) && node.body !== undefined ? node.body : node, facts);
    // Who names the API of the file opens none.
    return isCode(node) || !facts.opens ? facts : Object.assign(facts, noFacts());
  };
  const note = (path: string, identifier: ts.Identifier, facts: Facts): void => {
    const found = resolve(sources, path, identifier);
    if (found === null || found.name === SEED || found.name === FIXTURE_BODY_TO) return;
    if (found.name === OPENER) facts.opens = true;
    else if (found.name === FIXTURE_BODY) facts.names.add(FIXTURE_BODY);
    else if (found.path.startsWith('src/') && MAKERS.has(found.name)) facts.makes.add(found.name);
    for (const node of found.code) merge(facts, factsOf(found.path, node));
    const { parent } = identifier;
    if (!ts.isCallExpression(parent) || parent.expression !== identifier) return;
    if (leftToDefault(found, parent).some((one) => look(found.path, [one]).names.size > 0))
      facts.names.add(`${found.name}()`);
  };
  const visit = (path: string, node: ts.Node, facts: Facts): void => {
    if (ts.isTypeNode(node) || isMethod(node)) return;
    if (ts.isIdentifier(node)) note(path, node, facts);
    else if (ts.isStringLiteralLike(node) || ts.isTemplateLiteralToken(node)) {
      const [id] = FIXTURE_ID.exec(node.text) ?? [];
      if (id !== undefined) facts.names.add(id);
    } else ts.forEachChild(node, (child) => visit(path, child, facts));
  };
  const look: Look = (path, code) => {
    const facts = noFacts();
    for (const node of code) visit(path, node, facts);
    return facts;
  };
  return look;
}

/** The method of an object runs when it is called, which is not followed. */
const isMethod = (node: ts.Node) =>
  ts.isMethodDeclaration(node) || (isFunction(node) && ts.isPropertyAssignment(node.parent));

const isCode = (node: ts.Node) => isFunction(node) || ts.isFunctionDeclaration(node);

/** A kit that opens a database prepares it for the tests of a file or for one test: what it adds is not judged. */
function merge(into: Facts, { opens, makes, names }: Facts): void {
  if (opens) into.opens = true;
  else {
    for (const one of makes) into.makes.add(one);
    for (const one of names) into.names.add(one);
  }
}

/** The defaults that a call takes: of parameters, and of members of a parameter, that it does not give. */
function leftToDefault({ code }: Found, call: ts.CallExpression): ts.Expression[] {
  return code.flatMap((node) => {
    const parameters = isCode(node) ? [...node.parameters] : [];
    return parameters.flatMap(({ name, initializer }, index) => {
      const given = call.arguments[index];
      const missing = given === undefined && initializer !== undefined ? [initializer] : [];
      const members = ts.isObjectBindingPattern(name) ? [...name.elements] : [];
      return [...missing, ...members.flatMap((member) => memberDefault(member, given))];
    });
  });
}

function memberDefault(member: ts.BindingElement, given: ts.Expression | undefined): ts.Expression[] {
  if (member.initializer === undefined) return [];
  if (given === undefined) return [member.initializer];
  if (!ts.isObjectLiteralExpression(given)) return [];
  const name = (member.propertyName ?? member.name).getText();
  const isGiven = given.properties.some(
    (property) => ts.isSpreadAssignment(property) || property.name?.getText() === name,
  );
  return isGiven ? [] : [member.initializer];
}
