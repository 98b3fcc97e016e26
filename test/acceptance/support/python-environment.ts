import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installPackages, programOnPath } from './programs.ts';
import { PYTHON_PACKAGES } from './python-packages.ts';

const run = promisify(execFile);

/**
 * A Python with packages at fixed versions, made once per user and kept in the cache directory. Null, with a notice,
 * where there is no Python and none can be installed. Throws when the packages cannot be installed.
 */
export async function pythonEnvironment(
  name: keyof typeof PYTHON_PACKAGES,
): Promise<{ bin: string; python: string } | null> {
  const packages = PYTHON_PACKAGES[name]();
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'heliograph', 'python');
  const place = join(cache, `${name}-${packages.join('-').replaceAll(/[^\w.-]/g, '_')}`);
  const found = { bin: join(place, 'bin'), python: join(place, 'bin', 'python') };
  // Written last: a process that was killed leaves half of an environment.
  const complete = join(place, 'complete');
  if (existsSync(complete) && (await works(found.python, ['-c', '']))) return found;
  const python = await systemPython();
  if (python === null) return null;
  await rm(place, { recursive: true, force: true });
  await mkdir(place, { recursive: true });
  try {
    await run(python, ['-m', 'venv', place]);
    const options = ['--quiet', '--disable-pip-version-check', '--no-input'];
    await run(found.python, ['-m', 'pip', 'install', ...options, ...packages], {
      maxBuffer: 64 * 1024 * 1024,
    });
    await writeFile(complete, '');
  } catch (error) {
    // Half of an environment must not be taken for a whole one.
    await rm(place, { recursive: true, force: true });
    const what = `pip cannot install ${packages.join(', ')}: check the network, the proxy and PIP_INDEX_URL`;
    throw new Error(what, { cause: error });
  }
  return found;
}

/** A Python that can make environments: Debian's comes without that. */
export async function systemPython(): Promise<string | null> {
  const usable = async () => {
    const python = programOnPath('python3');
    return python !== undefined && (await works(python, ['-c', 'import venv, ensurepip'])) ? python : null;
  };
  const python = await usable();
  if (python !== null) return python;
  await installPackages(['python3', 'python3-venv']);
  const installed = await usable();
  if (installed === null) {
    process.stdout.write('NOT TESTED for want of python3 with venv and pip; install them.\n');
  }
  return installed;
}

async function works(program: string, args: readonly string[]): Promise<boolean> {
  return await run(program, [...args]).then(
    () => true,
    () => false,
  );
}
