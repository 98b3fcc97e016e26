'use strict';

/*
 * Runs before `npm start` and `npm test`: installs what package-lock.json asks for when it is not there.
 * Plain Node 20 without dependencies, since there may be none yet. With --browser it also provides the
 * Chromium of the page tests, and with --run FILE it runs a script with the Node.js that it installed: a shell in
 * which `node` has run once finds the older one again.
 */

const { execFile, spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '..');
const PROGRESS_INTERVAL_MS = 10_000;

function say(line) {
  process.stdout.write(`${line}\n`);
}

function readJson(file) {
  try {
    return JSON.parse(fs.readFileSync(path.join(root, file), 'utf8'));
  } catch {
    return undefined;
  }
}

/** Why node_modules cannot be used as it is, or undefined when it is what package-lock.json asks for. */
function staleReason() {
  const wanted = readJson('package-lock.json');
  // npm writes this file last, so an interrupted installation has none.
  const installed = readJson('node_modules/.package-lock.json');
  if (wanted === undefined) return 'package-lock.json cannot be read';
  if (installed === undefined) return 'the dependencies are not installed';
  for (const [location, entry] of Object.entries(wanted.packages)) {
    if (location === '') continue;
    const present = installed.packages[location];
    // Optional packages of other systems are left out on purpose.
    if (present === undefined && entry.optional === true) continue;
    if (present === undefined || present.version !== entry.version || present.integrity !== entry.integrity) {
      return `${location.replace(/^.*node_modules\//, '')} is not the version in package-lock.json`;
    }
  }
  const extra = Object.entries(installed.packages).find(
    // An optional one belongs to this system, which is not the one the lock file was made on.
    ([location, entry]) => wanted.packages[location] === undefined && entry.optional !== true,
  );
  if (extra !== undefined) return `${extra[0]} is not in package-lock.json`;
  if (!fs.existsSync(installedNode())) return 'its Node.js is missing';
  return undefined;
}

function installedNode() {
  return path.join(root, 'node_modules', '.bin', process.platform === 'win32' ? 'node.cmd' : 'node');
}

/**
 * Whether every optional dependency has an entry. A lock file that was made where the registry does not
 * offer the packages of other systems has gaps, which `npm ci` refuses and `npm install` fills.
 */
function isLockComplete() {
  const packages = readJson('package-lock.json')?.packages ?? {};
  const names = new Set(Object.keys(packages).map((location) => location.replace(/^.*node_modules\//, '')));
  return Object.values(packages).every((entry) =>
    Object.keys(entry.optionalDependencies ?? {}).every((name) => names.has(name)),
  );
}

/** Runs a program quietly, with a line every ten seconds; resolves with its exit code and last output. */
function run(command, args, what, env, howFar = () => '') {
  return new Promise((resolve) => {
    const begin = Date.now();
    const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const keep = (chunk) => {
      output = (output + chunk).slice(-8_192);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    const progress = setInterval(
      () => say(`${what}: ${Math.round((Date.now() - begin) / 1000)} s${howFar()}`),
      PROGRESS_INTERVAL_MS,
    );
    const end = (code, text) => {
      clearInterval(progress);
      resolve({ code, output: text, seconds: ((Date.now() - begin) / 1000).toFixed(1) });
    };
    child.once('error', (error) => end(1, error.message));
    child.once('close', (code) => end(code, output));
  });
}

/** npm says nothing itself. It unpacks late, so that the first half passes at 0. */
function packagesUnpacked() {
  const places = Object.keys(readJson('package-lock.json')?.packages ?? {}).filter((place) => place !== '');
  const there = places.filter((place) => fs.existsSync(path.join(root, place, 'package.json')));
  return `, ${there.length} of about ${places.length} packages`;
}

const NO_NETWORK = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EIDLETIMEOUT|network/i;
const NO_REGISTRY =
  'The npm registry cannot be reached: check the network, the proxy and `npm config get registry`';

/** What to do about the usual failures; the first that its output shows. */
const REMEDIES = [
  [/ENOSPC|no space left/i, 'The disk is full: free 3 GB where this folder is, then try again.'],
  [
    /EACCES|EPERM|EROFS/,
    'A file may not be written: see who owns this folder and the cache of npm, then try again.',
  ],
  [NO_NETWORK, `${NO_REGISTRY}, then try again.`],
  [
    /Node\.js is missing/,
    'Scripts of packages did not run: set `npm config set ignore-scripts false` for this folder, then try again.',
  ],
];

function remedy(text) {
  const found = REMEDIES.find(([pattern]) => pattern.test(text));
  return found?.[1] ?? 'See what npm says below, then try again.';
}

/** Without a registry npm is silent for minutes before it says so. Returns what stops the question. */
function askRegistry(command, before) {
  const args = [...before, 'ping', '--fetch-retries=0', '--fetch-timeout=20000'];
  const ping = execFile(command, args, { cwd: root, timeout: 60_000 }, (error, _output, errors) => {
    if (error !== null && NO_NETWORK.test(errors))
      say(`${NO_REGISTRY}. npm goes on trying for some minutes; Ctrl-C ends it.`);
  });
  return () => ping.kill();
}

async function installDependencies() {
  const reason = staleReason();
  if (reason === undefined) return true;
  const subcommand = isLockComplete() ? ['ci'] : ['install', '--no-save'];
  say(
    `Installing dependencies (npm ${subcommand[0]}), since ${reason}. It takes one to three minutes, ` +
      'longer over a slow network.',
  );
  const npm = process.env.npm_execpath;
  const isScript = npm !== undefined && /npm-cli\.js$/.test(npm);
  const command = isScript ? process.execPath : 'npm';
  // The embedded servers and Node.js itself are development dependencies: NODE_ENV=production must not omit them.
  const args = [
    ...subcommand,
    '--include=dev',
    '--include=optional',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ];
  const before = isScript ? [npm] : [];
  const stopAsking = askRegistry(command, before);
  const whole = [...before, ...args];
  const result = await run(command, whole, 'installing dependencies', process.env, packagesUnpacked);
  stopAsking();
  const after = result.code === 0 ? staleReason() : undefined;
  if (result.code === 0 && after === undefined) {
    say(`Dependencies are installed (${result.seconds} s).`);
    return true;
  }
  const problem = after ?? `npm ${subcommand[0]} ended with code ${result.code}`;
  process.stderr.write(
    `\nThe dependencies could not be installed. ${remedy(`${problem}\n${result.output}`)}\n\n` +
      `${problem}\n${result.output.trim().split('\n').slice(0, 30).join('\n')}\n`,
  );
  return false;
}

function findOnPath(names) {
  const directories = (process.env.PATH ?? '').split(path.delimiter).filter((directory) => directory !== '');
  for (const name of names) {
    for (const directory of directories) {
      const file = path.join(directory, name);
      if (isExecutable(file)) return file;
    }
  }
  return undefined;
}

function isExecutable(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

function findChromium() {
  const set = process.env.HELIOGRAPH_CHROMIUM;
  if (set !== undefined && set !== '') return isExecutable(set) ? set : undefined;
  return findOnPath([HEADLESS_SHELL, 'chromium', 'chromium-browser', 'google-chrome']);
}

/** Chromium without its windows, which takes less than half of the processor time. Its name is that of Debian's package too. */
const HEADLESS_SHELL = 'chromium-headless-shell';

function hasPackage(name) {
  const { status, stdout } = spawnSync('apt-cache', ['show', '--no-all-versions', name]);
  return status === 0 && stdout.length > 0;
}

/** Never fails: without a browser everything but the page tests works. */
async function provideChromium() {
  if (findChromium() !== undefined) return;
  const isRoot = process.getuid?.() === 0;
  const hasApt = fs.existsSync('/etc/debian_version') && spawnSync('apt-get', ['--version']).status === 0;
  const set = process.env.HELIOGRAPH_CHROMIUM;
  if (!set && isRoot && hasApt) {
    say('Installing Chromium for the page tests (apt-get).');
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const update = await run('apt-get', ['update'], 'reading package lists', env);
    // A machine that has just started often installs updates by itself, and holds the lock for minutes.
    const name = hasPackage(HEADLESS_SHELL) ? HEADLESS_SHELL : 'chromium';
    const args = ['install', '-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=600', name];
    const install = await run('apt-get', args, 'installing Chromium', env);
    if (install.code === 0 && findChromium() !== undefined) {
      say(`Chromium is installed (${install.seconds} s).`);
      return;
    }
    say((install.output || update.output).trim().split('\n').slice(-5).join('\n'));
  }
  say(
    set
      ? `HELIOGRAPH_CHROMIUM is set, but ${set} is not an executable file; the page tests need it.`
      : 'No Chromium was found. The page tests need it: install it, or set HELIOGRAPH_CHROMIUM to its program.',
  );
}

async function main() {
  if (!(await installDependencies())) process.exit(1);
  if (process.argv.includes('--browser')) await provideChromium();
  const option = process.argv.indexOf('--run');
  if (option === -1) return;
  const { status } = spawnSync(installedNode(), [process.argv[option + 1]], { cwd: root, stdio: 'inherit' });
  process.exitCode = status ?? 1;
}

main();
