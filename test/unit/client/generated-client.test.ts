import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { findGo } from '../../../dev/embedded/programs.ts';
import { BY_HAND } from '../../../scripts/python-client/method-writer.ts';
import { snakeCase } from '../../../scripts/python-client/names.ts';
import { openApiDocument } from '../../../scripts/site/openapi-document.ts';
import { operationsOf } from '../../support/openapi-document.ts';

/** The operation that has two addresses; clients use the other one. */
const SECOND_ADDRESS = 'getAccountIdentityUnderPrefix';

const run = promisify(execFile);
const PROJECT = fileURLToPath(new URL('../../../', import.meta.url));
const PYTHON = join(PROJECT, 'clients', 'python', 'src', 'heliograph');
const COMMITTED = {
  typescript: join(PROJECT, 'clients', 'typescript', 'src', 'generated'),
  python: join(PYTHON, 'generated'),
  go: join(PROJECT, 'clients', 'go'),
};

function filesOf(directory: string): Record<string, string> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter(
    (one) => one.isFile() && !one.name.endsWith('.pyc'),
  );
  return Object.fromEntries(
    files.map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [path.slice(directory.length), readFileSync(path, 'utf8')];
    }),
  );
}

/** What the generator writes for a language. */
async function generatedFor(language: string): Promise<Record<string, string>> {
  const fresh = mkdtempSync(join(tmpdir(), 'heliograph-client-'));
  onTestFinished(() => rmSync(fresh, { recursive: true, force: true }));
  const env = {
    ...process.env,
    PATH: [dirname(findGo(process.env) ?? ''), process.env.PATH].join(delimiter),
  };
  await run(process.execPath, ['scripts/generate-client.ts', fresh, language], {
    cwd: PROJECT,
    env,
  });
  return filesOf(join(fresh, language));
}

test.for(['typescript', 'python', 'go'] as const)(
  'the generated part of the client for %s is what the API of today gives; otherwise run npm run client',
  async (language, { skip }) => {
    if (language === 'go' && findGo(process.env) === undefined) return skip('Go is missing');
    const [committed, generated] = [filesOf(COMMITTED[language]), await generatedFor(language)];
    const isGenerated = (name: string) => language !== 'go' || name.endsWith('.gen.go');
    expect(Object.keys(generated).sort()).toEqual(Object.keys(committed).filter(isGenerated).sort());
    for (const [name, text] of Object.entries(generated)) expect(committed[name], name).toBe(text);
    const paths = Object.keys(generated).map((name) => join(COMMITTED[language], name));
    const { stdout } = await run('git', ['check-attr', 'linguist-generated', '--', ...paths], {
      cwd: PROJECT,
    });
    expect(
      stdout
        .trim()
        .split('\n')
        .filter((line) => !line.endsWith(': set')),
    ).toEqual([]);
  },
);

test('both clients for Python have a method for each operation, named as its operationId in snake_case', async () => {
  const operations = operationsOf(await openApiDocument())
    .map(({ operationId = '' }) => operationId)
    .filter((id) => id !== SECOND_ADDRESS);
  expect(operations.length).toBeGreaterThan(50);
  for (const id of BY_HAND) expect(operations).toContain(id);
  for (const flavour of ['sync', 'async']) {
    const files = [join(COMMITTED.python, `${flavour}_api.py`), join(PYTHON, `_${flavour}_client.py`)];
    const text = files.map((file) => readFileSync(file, 'utf8')).join('\n');
    const methods = [...text.matchAll(/^ {4}(?:async )?def ([a-z]\w*)\(/gm)].map(([, name]) => name);
    for (const id of operations) expect(methods).toContain(snakeCase(id));
  }
});
