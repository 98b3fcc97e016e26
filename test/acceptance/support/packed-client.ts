import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { PROJECT } from './stack.ts';

const run = promisify(execFile);
const MODULES = join(PROJECT, 'node_modules');
const COMPILER = join(MODULES, '.bin', 'tsc');

/** What somebody's project that uses the client looks like; strict. */
const TSCONFIG = {
  compilerOptions: {
    target: 'es2022',
    module: 'nodenext',
    types: ['node'],
    lib: ['es2022', 'dom', 'dom.iterable'],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    erasableSyntaxOnly: true,
    noEmit: true,
  },
  include: ['*.mts'],
};

/** Packs the client as for a registry into the folder of a project. */
export async function packClient(project: string): Promise<void> {
  const source = join(project, 'source');
  // A copy, so that nothing is built inside the clone.
  cpSync(join(PROJECT, 'clients', 'typescript'), source, {
    recursive: true,
    filter: (path) => !/[\\/](dist|node_modules)$/.test(path),
  });
  mkdirSync(join(source, 'node_modules'));
  symlinkSync(join(MODULES, 'standardwebhooks'), join(source, 'node_modules', 'standardwebhooks'));
  // `prepack` finds the compiler as it does inside the clone.
  const env = { ...process.env, PATH: `${join(MODULES, '.bin')}${delimiter}${process.env.PATH}` };
  await run('npm', ['pack', '--offline', '--pack-destination', project], { cwd: source, env });
}

/** Fails when the programs of a project do not fit the types of the client. */
export async function checkTypes(project: string): Promise<void> {
  writeFileSync(join(project, 'tsconfig.strict.json'), JSON.stringify(TSCONFIG));
  await run(COMPILER, ['-p', 'tsconfig.strict.json'], { cwd: project });
}
