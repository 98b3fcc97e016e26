import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { BUNDLED_FOLDERS, loadWorkflowBundle, slimBundle } from '../../../src/worker/workflow-bundle.ts';
import { silentLogger } from '../../support/silent-logger.ts';

const COMMENT = '//# sourceMappingURL=data:application/json;charset=utf-8;base64,';

function mapOf(code: string): { sources?: string[] } {
  return JSON.parse(Buffer.from(code.split(COMMENT)[1] ?? '', 'base64').toString());
}

test('a slim bundle does the same, in ASCII, and its map tells lines without their text', () => {
  const map = { version: 3, file: 'a.js', sources: ['a.ts'], sourcesContent: ['long'], mappings: 'AAAA' };
  const source = `globalThis.said = 'für – 😀'; // ──▶\n`;
  const slim = slimBundle(`${source}${COMMENT}${Buffer.from(JSON.stringify(map)).toString('base64')}`);
  const { sourcesContent: _, ...rest } = map;
  expect(mapOf(slim)).toEqual(rest);
  expect(slim).toMatch(/^[\0-\x7f]*$/);
  const evaluate = new Function(`${slim}\nreturn globalThis.said;`);
  expect(evaluate()).toBe('für – 😀');
});

test('code without a map stays as it is', () => {
  expect(slimBundle('const a = 1;')).toBe('const a = 1;');
});

test('what the name of a bundle is a digest of is all of our code in it', async () => {
  const bundle = await loadWorkflowBundle(silentLogger);
  const code = 'code' in bundle ? bundle.code : readFileSync(bundle.codePath, 'utf8');
  const ours = (mapOf(code).sources ?? []).flatMap((source) => /\/src\/(.+\.ts)$/.exec(source)?.[1] ?? []);
  const own = ours.filter((path) => existsSync(new URL(`../../../src/${path}`, import.meta.url)));
  expect(own).toContain('workflows/deliver-event.ts');
  expect(own.filter((path) => !BUNDLED_FOLDERS.some((folder) => path.startsWith(`${folder}/`)))).toEqual([]);
});
