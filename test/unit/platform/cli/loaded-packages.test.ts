import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** What CommonJS has loaded once the commands are known: the packages of Temporal are such modules. */
const PROGRAM = `
import { createRequire } from 'node:module';
const { buildAdminCommand } = await import('./src/admin.ts');
buildAdminCommand();
console.log(JSON.stringify(Object.keys(createRequire(import.meta.url).cache)));`;

test('a command that asks Temporal for nothing loads no package of Temporal', () => {
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
    encoding: 'utf8',
  });
  const loaded = JSON.parse(output) as string[];
  expect(loaded.some((path) => path.includes('node_modules/commander/'))).toBe(true);
  expect(loaded.filter((path) => /node_modules\/(@temporalio|@grpc|protobufjs)\//.test(path))).toEqual([]);
});
