import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** The sources as the image has them. */
let image: string;

beforeAll(async () => {
  image = await mkdtemp(join(tmpdir(), 'production-image-'));
  await cp(join(ROOT, 'src'), join(image, 'src'), { recursive: true });
  await cp(join(ROOT, 'package.json'), join(image, 'package.json'));
  await symlink(join(ROOT, 'node_modules'), join(image, 'node_modules'));
});

afterAll(async () => await rm(image, { recursive: true }));

const node = async (...args: string[]) => (await run(process.execPath, args, { cwd: image })).stdout;

test('without dev the command line has every command but those of development', async () => {
  const help = await node('src/main.ts', '--help');
  for (const name of ['api', 'worker', 'all', 'run', 'migrate', 'admin'])
    expect(help).toMatch(new RegExp(`^  ${name} `, 'm'));
  expect(help).not.toMatch(/^ {2}(start|sandbox) /m);
});

test.each(['api/start-api.ts', 'worker/start-worker.ts', 'migrate.ts'])(
  'without dev %s loads',
  async (path) => {
    expect(await node('--eval', `import('./src/${path}').then(() => console.log('loaded'))`)).toContain(
      'loaded',
    );
  },
);
