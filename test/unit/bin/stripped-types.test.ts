import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const run = promisify(execFile);
const HOOK = fileURLToPath(new URL('../../../bin/stripped-types.js', import.meta.url));

/** Prints what it was given and whether this process has loaded the part of Node.js that removes types. */
const MAIN = `import { half } from './half.ts';
interface Unused {
  value: number;
}
const strips = process.moduleLoadList.some((name: string) => name.includes('amaro'));
console.log(JSON.stringify({ half: half(84), strips }));
`;
const HALF = 'export function half(value: number): number { return value / 2; }\n';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stripped-types-'));
  await mkdir(join(folder, 'bin'));
  await cp(HOOK, join(folder, 'bin', 'stripped-types.js'));
  await mkdir(join(folder, 'src'));
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  await write('main.ts', MAIN);
  await write('half.ts', HALF);
});

afterEach(async () => {
  await chmod(folder, 0o755);
  await rm(folder, { recursive: true });
});

const write = (name: string, text: string) => writeFile(join(folder, 'src', name), text);

async function start(...flags: string[]) {
  const args = [
    '--import',
    join(folder, 'bin', 'stripped-types.js'),
    ...flags,
    join(folder, 'src', 'main.ts'),
  ];
  const { stdout, stderr } = await run(process.execPath, args);
  return { ...(JSON.parse(stdout) as { half: number; strips: boolean }), stderr };
}

describe('a process that is given sources without types', () => {
  test('removes them at its first start and not at the next one, and prints no warning', async () => {
    expect(await start()).toEqual({ half: 42, strips: true, stderr: '' });
    expect(await start()).toEqual({ half: 42, strips: false, stderr: '' });
  });

  test('sees a file that was changed, and one that was cut off in the cache', async () => {
    await start();
    await write('half.ts', HALF.replace('/ 2', '/ 3'));
    expect(await start()).toMatchObject({ half: 28, strips: true });
    const cached = join(folder, 'node_modules/.cache/heliograph/sources/src/half.ts.js');
    await writeFile(cached, (await readFile(cached, 'utf8')).slice(0, 30));
    expect(await start()).toMatchObject({ half: 28, strips: true });
    expect(await start()).toMatchObject({ half: 28, strips: false });
  });

  test('names the line and column of the source when something is thrown', async () => {
    await write('half.ts', `${HALF}\n  const never: unknown = null; throw new Error('here' as string);\n`);
    await expect(start()).rejects.toThrow('half.ts:3:38');
    await expect(start()).rejects.toThrow('half.ts:3:38');
  });

  test('starts where nothing can be written', async () => {
    await writeFile(join(folder, 'node_modules'), 'a file where the cache would be');
    expect(await start()).toEqual({ half: 42, strips: true, stderr: '' });
    expect(await start()).toEqual({ half: 42, strips: true, stderr: '' });
  });

  test('strips nothing at all after it was done for an image', async () => {
    await run(process.execPath, [join(folder, 'bin', 'stripped-types.js')]);
    const kept = await readdir(join(folder, 'node_modules/.cache/heliograph/sources/src'));
    expect(kept.sort()).toEqual(['half.ts.js', 'main.ts.js']);
    expect(await start()).toEqual({ half: 42, strips: false, stderr: '' });
  });
});
