import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  FLOORS,
  HOUSE,
  houseTable,
  importProblems,
  importsOf,
  NARROWER,
  PACKAGES,
  ROOMS,
} from './import-policy.ts';

const ROOT = join(import.meta.dirname, '../../..');
const SOURCES = new Map(
  globSync('{src,dev}/**/*.ts', { cwd: ROOT }).map((path) => [
    path,
    importsOf(path, readFileSync(join(ROOT, path), 'utf8')),
  ]),
);

/** What the check says besides once these files are there too. */
function planted(files: Readonly<Record<string, string>>): string[] {
  const added = new Map(Object.entries(files).map(([path, text]) => [path, importsOf(path, text)]));
  return importProblems(new Map([...SOURCES, ...added]), added);
}

/** The problems of one new file that imports another. */
function withImport(from: string, to: string, statement = "import '$';"): string[] {
  const up = '../'.repeat(from.split('/').length - 1);
  const files = { [from]: statement.replace('$', `${up}${to}`) };
  return planted(SOURCES.has(to) ? files : { ...files, [to]: '' });
}

/** A file at some depth of a folder; what is public of a room lies directly in it. */
const DEPTHS = ['planted.ts', 'a/planted.ts', 'a/b/planted.ts', 'a/b/c/planted.ts'];

test('every import of the sources keeps to the house, and none goes in a circle', () => {
  expect(SOURCES.size).toBeGreaterThan(400);
  expect(importProblems(SOURCES)).toEqual([]);
});

test('docs/architecture.md has the same table', () => {
  expect(readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')).toContain(houseTable());
});

describe.each(ROOMS)('%s', (room) => {
  const floor = FLOORS.findIndex((rooms) => rooms.some((each) => each === room));
  const lower: readonly string[] = FLOORS.slice(0, floor).flat();
  const upper: readonly string[] = FLOORS.slice(floor + 1).flat();

  test.each(['src/api', 'src/workflows', 'src/activities', 'src/worker', 'dev'])(
    'may not import %s, however deep',
    (door) => {
      for (const depth of DEPTHS) {
        const [from, to] = [`${room}/${depth}`, `${door}/x/forbidden.ts`];
        expect(withImport(from, to)).toEqual([`${from} imports ${to}`]);
      }
    },
  );

  test('may import rooms of lower floors: what lies directly in them or is named after its folder', () => {
    if (room in NARROWER) return;
    for (const other of lower) {
      expect(withImport(`${room}/a/planted.ts`, `${other}/offered.ts`)).toEqual([]);
      expect(withImport(`${room}/a/planted.ts`, `${other}/inner/inner.ts`)).toEqual([]);
      const [from, to] = [`${room}/a/planted.ts`, `${other}/inner/own.ts`];
      expect(withImport(from, to)).toEqual([`${from} imports ${to}`]);
    }
  });

  test('may not import a room of a floor above, not even its types', () => {
    for (const other of upper) {
      const [from, to] = [`${room}/a/planted.ts`, `${other}/offered.ts`];
      expect(withImport(from, to)).toEqual([`${from} imports ${to}`]);
      expect(withImport(from, to, "import type { X } from '$';")).toEqual([`${from} imports ${to}`]);
    }
  });

  test('is not imported by the platform', () => {
    const [from, to] = ['src/platform/a/planted.ts', `${room}/offered.ts`];
    expect(withImport(from, to, "import type { X } from '$';")).toEqual([`${from} imports ${to}`]);
  });

  test('gives workflows its types only', () => {
    const [from, to] = ['src/workflows/planted.ts', `${room}/offered.ts`];
    expect(withImport(from, to, "import type { X } from '$';")).toEqual([]);
    expect(withImport(from, to, "import { type X } from '$';")).toEqual([`${from} imports ${to}`]);
  });
});

describe('the doors', () => {
  test.each([
    ['src/api', 'src/worker'],
    ['src/api', 'src/activities'],
    ['src/api', 'src/workflows'],
    ['src/api', 'dev'],
    ['src/activities', 'src/worker'],
    ['src/activities', 'src/api'],
    ['src/activities', 'src/workflows'],
    ['src/worker', 'src/api'],
    ['src/worker', 'dev'],
    ['src/platform', 'src/api'],
    ['src/platform', 'dev'],
    ['src/platform/config', 'src/platform/http'],
    ['src/ingest/split', 'src/platform/postgres'],
  ])('%s may not import %s, however deep', (folder, target) => {
    for (const depth of DEPTHS) {
      const [from, to] = [`${folder}/${depth}`, `${target}/forbidden.ts`];
      expect(withImport(from, to)).toEqual([`${from} imports ${to}`]);
    }
  });

  test('an import that is written as a type, a call or an export is one', () => {
    const [from, to] = ['src/api/a/b/planted.ts', 'src/worker/forbidden.ts'];
    const said = [`${from} imports ${to}`];
    expect(withImport(from, to, "type X = import('$').X;")).toEqual(said);
    expect(withImport(from, to, "const load = async () => await import('$');")).toEqual(said);
    expect(withImport(from, to, "export { x } from '$';")).toEqual(said);
  });
});

test('a folder that the house does not have is refused', () => {
  expect(planted({ 'src/helpers/planted.ts': '' })).toEqual([
    'src/helpers/planted.ts is in no folder of the house',
  ]);
});

test('nothing outside of src is imported, and nothing that is not there', () => {
  expect(
    planted({ 'src/features/keys/planted.ts': "import '../../../test/support/test-database.ts';" }),
  ).toEqual(['src/features/keys/planted.ts imports test/support/test-database.ts']);
  expect(planted({ 'src/features/keys/planted.ts': "import './gone.ts';" })).toEqual([
    'src/features/keys/planted.ts imports src/features/keys/gone.ts, which is not there',
  ]);
});

test('no file stands beside a folder of the same name: the folder has it', () => {
  const folders = new Set([...SOURCES.keys()].map((path) => dirname(path)));
  expect([...SOURCES.keys()].filter((path) => folders.has(path.replace(/\.ts$/, '')))).toEqual([]);
});

test('circles are found, those of types included', () => {
  const files = {
    'src/features/keys/a/one.ts': "import type { X } from './two.ts';",
    'src/features/keys/a/two.ts': "import './three.ts';",
    'src/features/keys/a/three.ts': "type X = import('./one.ts').X;",
  };
  expect(planted(files)).toEqual([
    'circle: src/features/keys/a/one.ts → src/features/keys/a/two.ts → src/features/keys/a/three.ts → src/features/keys/a/one.ts',
  ]);
});

test('circles of rooms are found where no file is in one', () => {
  const files = {
    'src/features/keys/planted.ts': "import '../users/offered.ts';",
    'src/features/users/offered.ts': '',
    'src/features/users/planted.ts': "import type { X } from '../keys/offered.ts';",
    'src/features/keys/offered.ts': '',
  };
  const circle = 'src/features/keys → src/features/users → src/features/keys';
  expect(planted(files)).toEqual([`circle of rooms: ${circle}`]);
});

describe('packages', () => {
  test.each(Object.keys(PACKAGES))('%s is not imported elsewhere', (name) => {
    expect(planted({ 'src/features/users/planted.ts': `import type { X } from '${name}';` })).toEqual([
      `src/features/users/planted.ts imports ${name}`,
    ]);
  });

  test.each(['src/workflows', 'src/ingest/split'])('%s reaches no system', (folder) => {
    expect(planted({ [`${folder}/planted.ts`]: "import 'node:fs';" })).toEqual([
      `${folder}/planted.ts imports node:fs`,
    ]);
  });
});

test('each folder of the house is there', () => {
  for (const { folder } of HOUSE) {
    const prefix = folder.replace(/\*\.ts$/, '');
    expect(
      [...SOURCES.keys()].some((path) => path.startsWith(prefix)),
      folder,
    ).toBe(true);
  }
});
