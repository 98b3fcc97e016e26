import { existsSync } from 'node:fs';
import { ensureBinary } from '../../../dev/embedded/binaries.ts';
import { programOnPath } from '../../acceptance/support/programs.ts';

/** What programs and schemas come from; undefined where there is none, which is said. */
export const GO = programOnPath('go') ?? ['/usr/local/go/bin/go'].find(existsSync);
if (GO === undefined)
  process.stdout.write('NOT TESTED for want of go: the chart and the workflows of CI; install it.\n');

/** `helm` and `actionlint`: from the PATH, the user's cache, or built with Go. */
export async function goProgram(name: keyof typeof PACKAGES): Promise<string> {
  const source = {
    name,
    variable: `HELIOGRAPH_TEST_${name.toUpperCase()}_BIN`,
    download: undefined,
    goPackage: PACKAGES[name],
  };
  return await ensureBinary(source, {
    env: process.env,
    log: (line) => process.stdout.write(`${line}\n`),
  });
}

const PACKAGES = {
  helm: 'helm.sh/helm/v3/cmd/helm@v3.22.0',
  actionlint: 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.12',
};

/** The first time a program is built, which takes minutes. */
export const BUILD_TIMEOUT_MS = 30 * 60_000;
