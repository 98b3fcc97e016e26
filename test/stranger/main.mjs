/*
 * What a stranger does: clones, reads the README, types what its sections "Start" and "First message" say, and nothing
 * else. Plain JavaScript for the oldest Node.js that the README allows, since nothing is installed yet.
 *
 *   node test/stranger/main.mjs FOLDER [MAJOR]    clones this repository into the folder, which stays, and uses the oldest
 *                                                 Node.js on the PATH, or that of the major version
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { sampleLine, sectionBlocks, statusesSaid } from './readme.mjs';

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url));
const INSTALL_WITHIN_MS = 20 * 60_000;
const REPLY_WITHIN_MS = 15 * 60_000;
const STOP_WITHIN_MS = 2 * 60_000;

/** The README says 60 s, on a machine that does nothing else; a quarter of its speed is forgiven. */
const FIRST_MESSAGE_WITHIN_MS = 4 * 60_000;

const terminals = [];
const [clone, wantedMajor] = process.argv.slice(2);
if (clone === undefined) throw new Error('name the folder to clone into');

function say(line) {
  process.stdout.write(`${line}\n`);
}

function seconds(ms) {
  return `${(ms / 1_000).toFixed(1)} s`;
}

/** The Node.js to use, which this project has not installed. */
function systemNode() {
  const found = systemFolders()
    .map((folder) => join(folder, 'node'))
    .filter((file) => existsSync(file))
    .map((file) => ({ file, version: execFileSync(file, ['--version'], { encoding: 'utf8' }).trim() }))
    .filter(({ version }) =>
      wantedMajor === undefined ? major(version) >= 20 : major(version) === Number(wantedMajor),
    )
    .sort((one, other) => major(one.version) - major(other.version));
  if (found[0] === undefined)
    throw new Error(`there is no Node.js ${wantedMajor ?? 'from version 20 on'} on the PATH`);
  return found[0];
}

function major(version) {
  return Number(version.replace('v', '').split('.')[0]);
}

function systemFolders() {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.filter((folder) => folder !== '' && !folder.includes('node_modules'));
}

/** Nothing of ours or of npm's is set, and all caches are empty. */
function strangersEnvironment(home, node) {
  const programs = join(home, 'programs');
  mkdirSync(programs);
  symlinkSync(node, join(programs, 'node'));
  const isOurs = (name) =>
    /^(HELIOGRAPH_|npm_(lifecycle|package|execpath|node|command)|(NODE_OPTIONS|NODE_ENV|NODE|INIT_CWD)$)/.test(
      name,
    );
  const kept = Object.entries(process.env).filter(([name]) => !isOurs(name));
  return {
    ...Object.fromEntries(kept),
    PATH: [programs, ...systemFolders()].join(delimiter),
    XDG_CACHE_HOME: join(home, 'cache'),
    npm_config_cache: join(home, 'npm'),
  };
}

/** The first terminal: what it runs, and all that it shows. */
function openTerminal(command, env) {
  const child = spawn('bash', ['-c', command], {
    cwd: clone,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const terminal = { child, shown: '', exitCode: undefined };
  terminals.push(terminal);
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      terminal.shown += text;
      process.stdout.write(text);
    });
  child.once('exit', (code, signal) => {
    terminal.exitCode = code ?? signal;
  });
  return terminal;
}

/** Waits until the first terminal shows something. */
async function shows(terminal, what, withinMs) {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const found = what.exec(terminal.shown);
    if (found !== null) return found;
    if (terminal.exitCode !== undefined)
      throw new Error(`it ended (${terminal.exitCode}) without showing ${what}`);
    if (Date.now() > deadline) throw new Error(`it did not show ${what} within ${seconds(withinMs)}`);
    await sleep(50);
  }
}

/** Types a block of the README into a second terminal. */
function type(code, env) {
  say(`$ ${code}`);
  const output = execFileSync('bash', ['-euo', 'pipefail', '-c', code], {
    cwd: clone,
    env,
    encoding: 'utf8',
  });
  say(output);
  return output;
}

async function start(readme, env) {
  const [commands] = sectionBlocks(readme, 'Start', 'sh');
  const command = commands?.split('\n')[0]?.replace(/\s+#.*/, '');
  if (command !== 'npm start')
    throw new Error(`the section "Start" begins with ${command}, not with npm start`);
  const terminal = openTerminal(command, env);
  try {
    await shows(terminal, /Heliograph is ready/, INSTALL_WITHIN_MS);
    return terminal;
  } catch (error) {
    const moved = /`(HELIOGRAPH_EMBEDDED_PORT_BASE=\d+ npm start)`/.exec(readme)?.[1];
    if (!/^Port \d+ .* is taken by another program/m.test(terminal.shown) || moved === undefined) throw error;
    const second = openTerminal(moved, env);
    await shows(second, /Heliograph is ready/, INSTALL_WITHIN_MS);
    return second;
  }
}

async function firstMessage(terminal, readme, env) {
  const [send, reply] = sectionBlocks(readme, 'First message', 'sh');
  const sample = sectionBlocks(readme, 'First message', '')[0];
  if (send === undefined || reply === undefined || sample === undefined)
    throw new Error(
      'the section "First message" lacks its commands or the line that the first terminal shows',
    );
  type(send, env);
  await shows(terminal, sampleLine(sample), REPLY_WITHIN_MS);
  const firstMs = Date.now();
  const ids = type(reply, env).match(/wamid\.[\w=-]+|"serviceMessageId":"\d+"/g) ?? [];
  if (ids.length === 0) throw new Error('the response to the reply has no ids of the message');
  for (const status of statusesSaid(readme))
    await shows(terminal, new RegExp(`^\\S+ +status .*\\b${status}\\b.*✓ verified`, 'm'), REPLY_WITHIN_MS);
  return firstMs;
}

async function stop(terminal) {
  // As Ctrl-C does: every program of the terminal gets it.
  process.kill(-terminal.child.pid, 'SIGINT');
  const deadline = Date.now() + STOP_WITHIN_MS;
  while (terminal.exitCode === undefined) {
    if (Date.now() > deadline) throw new Error(`Ctrl-C did not stop it within ${seconds(STOP_WITHIN_MS)}`);
    await sleep(50);
  }
  const { pids } = JSON.parse(readFileSync(join(clone, '.data/embedded.json'), 'utf8'));
  if (Object.keys(pids).length > 0) throw new Error(`Ctrl-C left ${Object.keys(pids).join(', ')}`);
}

const home = mkdtempSync(join(tmpdir(), 'heliograph-stranger-'));
try {
  const { file, version } = systemNode();
  execFileSync('git', ['clone', '--quiet', REPOSITORY, clone], { stdio: 'inherit' });
  say(`A stranger with Node.js ${version} follows the README in ${clone}.`);
  const env = strangersEnvironment(home, file);
  const readme = readFileSync(join(clone, 'README.md'), 'utf8');
  const begunMs = Date.now();
  let installedMs = begunMs;
  const terminal = await start(readme, env);
  installedMs += Number(/^Dependencies are installed \(([\d.]+) s\)/m.exec(terminal.shown)?.[1] ?? 0) * 1_000;
  const firstMs = await firstMessage(terminal, readme, env);
  await stop(terminal);
  const tookMs = firstMs - installedMs;
  say(
    `First message ${seconds(tookMs)} after the dependencies were installed, which took ${seconds(installedMs - begunMs)}.`,
  );
  if (tookMs > FIRST_MESSAGE_WITHIN_MS) throw new Error('the first message took too long');
} catch (error) {
  process.stderr.write(`\nThe README does not hold: ${error.message}\n`);
  process.exitCode = 1;
} finally {
  for (const { child, exitCode } of terminals)
    if (exitCode === undefined) process.kill(-child.pid, 'SIGTERM');
  rmSync(home, { recursive: true, force: true });
}
