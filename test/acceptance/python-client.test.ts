import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { newestConversation, writeAsCustomer } from './support/customer.ts';
import { pythonEnvironment, systemPython } from './support/python-environment.ts';
import { description, PROJECT } from './support/stack.ts';

/** The Python client: checked, packed, installed where nothing else is, and used with the real gateway. */

const run = promisify(execFile);
const CLIENT = join(PROJECT, 'clients', 'python');
const RECEIVERS = join(PROJECT, 'examples', 'receivers');

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'heliograph-python-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a failing program printed is the reason to show. */
async function runs(program: string, args: readonly string[], options: { cwd: string; env?: object }) {
  const env = { ...process.env, PYTHONPYCACHEPREFIX: join(folder, 'cache'), ...options.env };
  const outcome = await run(program, [...args], { cwd: options.cwd, env }).catch(
    (error: Error & { stdout: string; stderr: string }) => error,
  );
  if (outcome instanceof Error) throw new Error(`${outcome.message}\n${outcome.stdout}${outcome.stderr}`);
  return outcome.stdout;
}

test('its own tests pass, and its types are strict, those of examples and receivers too', async ({
  skip,
}) => {
  const python = await pythonEnvironment('client');
  if (python === null) return skip();
  const env = { PYTHONPATH: join(CLIENT, 'src'), MYPYPATH: 'src:tests' };
  const options = ['-q', '-p', 'no:cacheprovider'];
  expect(await runs(python.python, ['-m', 'pytest', ...options], { cwd: CLIENT, env })).toMatch(/\d+ passed/);
  const strict = ['-m', 'mypy', '--strict', '--cache-dir', join(folder, 'mypy')];
  const receiver = join(RECEIVERS, 'fastapi', 'receiver.py');
  await runs(python.python, [...strict, 'src', 'tests', 'examples', receiver], { cwd: CLIENT, env });
  const wrong = join(folder, 'wrong.py');
  writeFileSync(
    wrong,
    'from heliograph import Heliograph\nHeliograph("", "").send_message({"type": "text"})\n',
  );
  await expect(runs(python.python, [...strict, wrong], { cwd: CLIENT, env })).rejects.toThrow('send_message');
});

test('the README shows the examples as they are', () => {
  const text = readFileSync(join(CLIENT, 'README.md'), 'utf8');
  const files = readdirSync(join(CLIENT, 'examples')).filter((name) => name.endsWith('.py'));
  expect(files.length).toBeGreaterThanOrEqual(3);
  for (const name of files) {
    const [, shown] = text.split(`<!-- file: examples/${name} -->\n\`\`\`python\n`);
    expect(shown?.split('```')[0], name).toBe(readFileSync(join(CLIENT, 'examples', name), 'utf8'));
  }
});

describe('the wheel', () => {
  let python: string | null = null;

  beforeAll(async () => {
    const packing = await pythonEnvironment('client-packing');
    const system = await systemPython();
    if (packing === null || system === null) return;
    const source = join(folder, 'source');
    const isKept = (path: string) => !/[\\/](dist|__pycache__)$/.test(path);
    cpSync(CLIENT, source, { recursive: true, filter: isKept });
    await runs(packing.python, ['-m', 'build', '--no-isolation', '--outdir', 'dist'], { cwd: source });
    const files = readdirSync(join(source, 'dist')).map((name) => join(source, 'dist', name));
    expect(files.map((name) => name.replace(/.*-\d+\.\d+\.\d+[^-]*?(?=-py3|\.tar)/, '')).toSorted()).toEqual([
      '-py3-none-any.whl',
      '.tar.gz',
    ]);
    await runs(packing.python, ['-m', 'twine', 'check', '--strict', ...files], { cwd: source });
    const empty = join(folder, 'empty');
    await runs(system, ['-m', 'venv', empty], { cwd: folder });
    python = join(empty, 'bin', 'python');
    const options = ['--quiet', '--disable-pip-version-check', '--no-input', '--no-compile'];
    const wheel = files.filter((name) => name.endsWith('.whl'));
    await runs(python, ['-m', 'pip', 'install', ...options, ...wheel], { cwd: folder });
  });

  const environment = () => ({
    HELIOGRAPH_URL: description().apiUrl,
    HELIOGRAPH_API_KEY: description().tenants[0]?.apiKey,
    TO: '+12025550143',
    // Files are served over https, with the authority of the stack.
    SSL_CERT_FILE: description().caPath,
  });
  const example = (name: string) => join(CLIENT, 'examples', name);

  test('has types and its version, and no file that is not its own', async ({ skip }) => {
    if (python === null) return skip();
    const program = `import importlib.metadata as m, pathlib, heliograph
print(m.version("heliograph-client"), (pathlib.Path(heliograph.__file__).parent / "py.typed").exists())
print({f.parts[0] for f in m.files("heliograph-client") if "dist-info" not in f.parts[0]})`;
    const { version } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'));
    const printed = await runs(python, ['-c', program], { cwd: folder });
    expect(printed).toBe(`${version} True\n{'heliograph'}\n`);
  });

  test('shows a conversation, downloads its file, sends and shows the state', async ({ skip }) => {
    if (python === null) return skip();
    const customer = await newestConversation();
    const printed = await runs(python, [example('conversation.py')], { cwd: folder, env: environment() });
    expect(printed).toContain(customer.text);
    expect(printed).toContain(`downloaded ${customer.picture.length} bytes`);
    expect(readFileSync(join(folder, 'download')).equals(customer.picture)).toBe(true);
    expect(printed).toMatch(/^sent .*accepted/m);
    expect(printed).toMatch(/^state .*accepted/m);
  });

  test('uploads a file and sends it, and says what is wrong with one', async ({ skip }) => {
    if (python === null) return skip();
    const jpeg = Buffer.concat([
      Buffer.from('ffd8ffe000104a46494600010100000100010000', 'hex'),
      randomBytes(99),
    ]);
    writeFileSync(join(folder, 'mug.jpg'), jpeg);
    const options = { cwd: folder, env: environment() };
    const printed = await runs(python, [example('send_file.py'), 'mug.jpg'], options);
    expect(printed).toBe(`sent accepted image/jpeg ${jpeg.length}\n`);
    writeFileSync(join(folder, 'none.jpg'), 'text');
    const refused = runs(python, [example('send_file.py'), 'none.jpg'], options);
    await expect(refused).rejects.toThrow(/422 unsupported_file_type: .*req_/);
    const strange = runs(python, [example('send_file.py'), 'mug.jpg'], {
      ...options,
      env: { ...environment(), HELIOGRAPH_API_KEY: 'ck_wrong' },
    });
    await expect(strange).rejects.toThrow('invalid_api_key');
  });

  test('reads what was missed and then what comes, with asyncio', async ({ skip }) => {
    if (python === null || !existsSync(python)) return skip();
    const env = { ...process.env, ...environment() };
    const child = spawn(python, [example('missed_events.py')], { cwd: folder, env });
    onTestFinished(() => void child.kill('SIGKILL'));
    let printed = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        printed += chunk;
      });
    await expect.poll(() => printed).toMatch(/^message wamid.*^live$/ms);
    await writeAsCustomer('12025550177', { type: 'text', text: { body: 'now' } });
    await expect.poll(() => printed).toMatch(/^message wamid\.quick-\w+ \S{5,}$/m);
  });
});
