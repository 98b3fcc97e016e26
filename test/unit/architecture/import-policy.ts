import { posix } from 'node:path';
import ts from 'typescript-compiler-api';

/** The floors behind the doors, from the ground up: each with its rooms, and what each room is for. */
const FLOOR_PLAN: readonly { floor: string; rooms: Readonly<Record<string, string>> }[] = [
  {
    floor: 'engine',
    rooms: {
      'src/engine/inbox': 'bodies that the platform sent, until they have become events',
      'src/engine/queue': 'pending deliveries: which may be attempted, by whom, when, in which order',
      'src/engine/endpoint':
        'an endpoint as the engine reads it: settings, signature, filter, health, circuit breaker',
      'src/engine/deliveries': 'from an event to an attempt: body, signature, filter, loop, outcome',
    },
  },
  {
    floor: 'features',
    rooms: {
      'src/features/accounts': 'tenants, WABAs, phone numbers, access tokens, limits',
      'src/features/customers': 'WhatsApp users and groups, under all ids that name one',
      'src/features/messages': 'messages in and out, their files, statuses, carts and payments',
      'src/features/endpoints': 'webhook endpoints as tenants set them up: URLs, secrets, headers, modes',
      'src/features/delivery-log': 'deliveries and events as tenants find them',
      'src/features/replays': 'sending delivered or failed events again',
      'src/features/keys': 'API keys, from request and approval to expiry',
      'src/features/setup-links':
        'links by which customers connect numbers: the customer’s steps, and those of the workflow',
      'src/features/users': 'the people of the portal: sign-in, second factor, roles, invitations',
      'src/features/mail': 'e-mails: texts, queue, SMTP',
    },
  },
  {
    floor: 'ingest',
    rooms: {
      'src/ingest/split': 'what a body of the platform says: its items, without a look at anything else',
      'src/ingest/senders': 'whose item it is: the customer and the conversation of each',
      'src/ingest/fields': 'webhook fields beside messages: calls, echoes, groups, history, reports',
      'src/ingest/intake': 'from stored bodies to events and rows, a shard at a time',
      'src/ingest/bodies': 'stored bodies as operators and erasures see them',
    },
  },
  {
    floor: 'ops',
    rooms: {
      'src/ops/health': 'checks of a running installation',
      'src/ops/alerts': 'alerts: their conditions, kinds and e-mails, and the operations URL',
      'src/ops/feed': 'the feed of operation events, and the hooks that receive it',
      'src/ops/erasures': 'erasing and exporting customers, WABAs and tenants, and retention',
      'src/ops/reconcile': 'comparing PostgreSQL, files and workflows after a restore',
      'src/ops/secrets': 'encryption keys and the columns that are sealed with them',
    },
  },
];

export const FLOORS: readonly (readonly string[])[] = FLOOR_PLAN.map(({ rooms }) => Object.keys(rooms));

export const ROOMS = FLOORS.flat();

const EVERY_ROOM = 'the rooms';
const OWN_OR_LOWER = 'its floor and below';
const PLATFORM = 'src/platform';
const EVERYTHING = 'everything';

/** One folder: what it may import beside itself, and of what only the types. The longest folder of a path holds. */
type Rule = {
  folder: string;
  holds: string;
  mayImport: readonly string[];
  types?: readonly string[] | undefined;
};

/** Rooms that import less than their floor may. */
export const NARROWER: Readonly<Record<string, Pick<Rule, 'mayImport' | 'types'>>> = {
  'src/ingest/split': {
    mayImport: [
      'src/platform/json',
      'src/platform/decimal.ts',
      'src/platform/event-type.ts',
      'src/platform/phone-number.ts',
    ],
    types: [
      'src/features/messages/calls.ts',
      'src/features/messages/media/media.ts',
      'src/features/messages/orders/orders.ts',
    ],
  },
};

/** The house. A folder that is not in it, or below one that is, may not be in src or dev. */
export const HOUSE: readonly Rule[] = [
  { folder: 'src/*.ts', holds: 'the command line: which process runs', mayImport: [EVERYTHING] },
  { folder: 'src/api', holds: 'routes and pages', mayImport: [EVERY_ROOM, PLATFORM] },
  {
    folder: 'src/workflows',
    holds: 'what Temporal replays',
    mayImport: ['src/platform/temporal/workflow-options.ts'],
    types: ['src/activities', EVERY_ROOM],
  },
  { folder: 'src/activities', holds: 'what workflows call', mayImport: [EVERY_ROOM, PLATFORM] },
  {
    folder: 'src/worker',
    holds: 'the worker process',
    mayImport: ['src/activities', EVERY_ROOM, PLATFORM],
  },
  {
    folder: 'src/mcp',
    holds: 'the MCP server, a client of the API',
    mayImport: [
      'src/api/operations',
      'src/api/openapi/idempotency-key.ts',
      'src/features/keys/api-key.ts',
      PLATFORM,
    ],
  },
  ...FLOOR_PLAN.flatMap(({ floor, rooms }) =>
    Object.entries(rooms).map(([folder, subject]) => ({
      folder,
      holds: `${floor}: ${subject}`,
      mayImport: NARROWER[folder]?.mayImport ?? [OWN_OR_LOWER, PLATFORM],
      types: NARROWER[folder]?.types,
    })),
  ),
  { folder: 'src/platform', holds: 'what no feature owns', mayImport: [] },
  {
    folder: 'src/platform/config',
    holds: 'settings',
    mayImport: [
      'src/platform/crypto/secret-box.ts',
      'src/platform/http/egress-proxy-url.ts',
      'src/platform/http/networks.ts',
      'src/platform/http/outbound-url.ts',
      'src/platform/postgres/database-url.ts',
    ],
  },
  { folder: 'src/platform/json', holds: 'JSON as text', mayImport: [] },
  { folder: 'dev', holds: 'embedded servers, sandbox, its console', mayImport: [EVERYTHING] },
];

/** Packages that only these folders import. */
export const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  '@modelcontextprotocol/server': ['src/mcp'],
  '@temporalio/activity': ['src/activities', 'src/platform/temporal'],
  '@temporalio/client': ['src/platform/temporal', 'src/worker', 'src/engine/deliveries/dispatch'],
  '@temporalio/worker': ['src/platform/temporal', 'src/worker'],
  '@temporalio/workflow': ['src/workflows'],
  fastify: ['src/api', 'dev'],
  hono: ['src/api/portal'],
  knex: ['src/platform/postgres'],
  minio: ['src/platform/object-store'],
  nodemailer: ['src/features/mail'],
  pg: ['src/platform/postgres', 'dev'],
  undici: ['src/platform/sender', 'src/platform/graph', 'dev'],
};

/** Folders whose code runs where there are no servers and no system: all that they import from outside. */
const NARROW: Readonly<Record<string, readonly string[]>> = {
  'src/workflows': ['@temporalio/workflow', '@temporalio/common'],
  'src/ingest/split': ['node:crypto'],
  'src/platform/json': ['node:crypto'],
};

/** Files of ours outside of both that they may import. */
const OUTSIDE = ['package.json'];

/** One import: of a package by its name, of what is ours by its path from the project's folder. */
export type Import = { from: string; to: string; isType: boolean };

/** What all files by their paths import. */
type Sources = ReadonlyMap<string, readonly Import[]>;

/** What breaks the rules in these sources, or in some of them and the circles that they are in; empty: nothing does. */
export function importProblems(sources: Sources, some: Sources = sources): string[] {
  const imports = [...sources.values()].flat();
  const theirs = [...some.values()].flat();
  const unknown = [...some.keys()].filter((path) => ruleOf(path) === undefined);
  const rooms = betweenRooms(theirs).map(({ from }) => from);
  const roomCircles = rooms.length > 0 ? circles(betweenRooms(imports), rooms) : [];
  return [
    ...unknown.map((path) => `${path} is in no folder of the house`),
    ...theirs.flatMap((each) => problemOf(each, sources) ?? []),
    ...circles(imports, [...some.keys()]).map((files) => `circle: ${files.join(' → ')}`),
    ...roomCircles.map((circle) => `circle of rooms: ${circle.join(' → ')}`),
  ];
}

/** The table of docs/architecture.md. */
export function houseTable(): string {
  const rows = HOUSE.map(({ folder, holds, mayImport, types = [] }) => {
    const named = mayImport.includes(OWN_OR_LOWER) ? [OWN_OR_LOWER] : mayImport;
    const allowed = [...named.map(shown), ...types.map((target) => `types of ${shown(target)}`)];
    return `| \`${folder.endsWith('.ts') ? folder : `${folder}/`}\` | ${holds} | ${allowed.join(', ') || '–'} |`;
  });
  return ['| folder | holds | may import |', '|---|---|---|', ...rows].join('\n');
}

function shown(target: string): string {
  return target.startsWith('src/') ? `\`${target.slice('src/'.length)}\`` : target;
}

function problemOf({ from, to, isType }: Import, sources: Sources): string | null {
  const refused = `${from} imports ${to}`;
  if (!isBelow(to, 'src') && !isBelow(to, 'dev')) {
    if (OUTSIDE.includes(to)) return null;
    if (to.startsWith('.') || to.startsWith('/') || to.includes(':/')) return refused;
    return /^(?:test|bench|scripts|bin|clients)\//.test(to) || !mayUse(from, to) ? refused : null;
  }
  if (!sources.has(to)) return `${refused}, which is not there`;
  const rule = ruleOf(from);
  if (rule === undefined || isBelow(to, rule.folder)) return null;
  const allowed = isType ? [...rule.mayImport, ...(rule.types ?? [])] : rule.mayImport;
  return allowed.some((target) => holds(target, to, from)) ? null : refused;
}

function holds(target: string, to: string, from: string): boolean {
  if (target === EVERYTHING) return true;
  if (target === EVERY_ROOM) return roomOf(to) !== undefined;
  if (target === OWN_OR_LOWER) return floorOf(to) <= floorOf(from) && isPublic(to);
  return isBelow(to, target);
}

function isPublic(path: string): boolean {
  const room = roomOf(path);
  return room !== undefined && (posix.dirname(path) === room || isNamedAfterFolder(path));
}

/** `media/media.ts`: what the folder shows to other rooms. */
function isNamedAfterFolder(path: string): boolean {
  return posix.basename(path, '.ts') === posix.basename(posix.dirname(path));
}

/** Counted from the ground; a path in no room is above all of them. */
function floorOf(path: string): number {
  const floor = FLOORS.findIndex((rooms) => rooms.some((room) => isBelow(path, room)));
  return floor < 0 ? FLOORS.length : floor;
}

function mayUse(from: string, to: string): boolean {
  const name = to.startsWith('@') ? to.split('/').slice(0, 2).join('/') : (to.split('/')[0] ?? to);
  const folders = PACKAGES[name];
  if (folders !== undefined && !folders.some((folder) => isBelow(from, folder))) return false;
  const narrow = Object.entries(NARROW).find(([folder]) => isBelow(from, folder));
  return narrow === undefined || narrow[1].includes(name);
}

/** Asked for every import of every check. */
const RULES = new Map<string, Rule | undefined>();

function ruleOf(path: string): Rule | undefined {
  if (!RULES.has(path)) RULES.set(path, longestRule(path));
  return RULES.get(path);
}

function longestRule(path: string): Rule | undefined {
  if (posix.dirname(path) === 'src') return HOUSE.find(({ folder }) => folder === 'src/*.ts');
  return HOUSE.filter(({ folder }) => isBelow(path, folder)).toSorted(
    (one, other) => other.folder.length - one.folder.length,
  )[0];
}

function roomOf(path: string): string | undefined {
  return ROOMS.find((room) => isBelow(path, room));
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/** Each import of a file, the dynamic ones and those of types included; what is ours by its path. */
export function importsOf(path: string, text: string): Import[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found: Import[] = [];
  const add = (specifier: ts.Node | undefined, isType: boolean): void => {
    if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return;
    const name = specifier.text;
    const to = name.startsWith('.') ? posix.join(posix.dirname(path), name) : name;
    found.push({ from: path, to, isType });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) add(node.moduleSpecifier, node.importClause?.isTypeOnly ?? false);
    else if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, node.isTypeOnly);
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
      add(node.argument.literal, true);
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
      add(node.arguments[0], false);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** The imports between rooms of one floor; those that go up are refused already. */
function betweenRooms(imports: readonly Import[]): Import[] {
  return imports.flatMap(({ from, to, isType }) => {
    const [room, other] = [roomOf(from), roomOf(to)];
    if (room === undefined || other === undefined || room === other) return [];
    return floorOf(from) === floorOf(to) ? { from: room, to: other, isType } : [];
  });
}

/** Files that import each other, through others too: one list per circle that is met from these files on. */
function circles(imports: readonly Import[], begins: readonly string[]): string[][] {
  const targets = new Map<string, string[]>();
  for (const { from, to } of imports) {
    const known = targets.get(from);
    if (known === undefined) targets.set(from, [to]);
    else known.push(to);
  }
  const done = new Set<string>();
  const found: string[][] = [];
  const walk = (path: string, way: readonly string[]): void => {
    const at = way.indexOf(path);
    if (at >= 0) found.push([...way.slice(at), path]);
    if (at >= 0 || done.has(path)) return;
    for (const target of targets.get(path) ?? []) walk(target, [...way, path]);
    done.add(path);
  };
  for (const path of begins) walk(path, []);
  return found;
}
