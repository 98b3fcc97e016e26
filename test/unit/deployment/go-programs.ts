import { ensureBinary } from '../../../dev/embedded/binaries.ts';
import { findGo } from '../../../dev/embedded/programs.ts';
import { repositoryFile } from './compose-file.ts';

/** What programs and schemas come from; undefined where there is none, which is said. */
export const GO = findGo(process.env);
if (GO === undefined)
  process.stdout.write(
    'NOT TESTED for want of Go 1.21 or newer: the chart, the proxy and the workflows of CI; install it.\n',
  );

const PACKAGES = {
  helm: () => 'helm.sh/helm/v3/cmd/helm@v3.22.0',
  actionlint: () => 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.12',
  // Of the version that the Compose stack names.
  caddy: () =>
    /github\.com\/caddyserver\/\S+@v\S+/.exec(repositoryFile('deploy/caddy/Dockerfile'))?.[0] ?? '',
};

/** A program that only tests need: from its variable, the PATH, the user's cache, or built with Go. */
export async function goProgram(name: keyof typeof PACKAGES): Promise<string> {
  const goPackage = PACKAGES[name]();
  const source = {
    // With the version: the cache keeps several of Caddy, and another one on the PATH does not count.
    name: name === 'caddy' ? `caddy-${goPackage.split('@v').at(-1)}` : name,
    variable: `HELIOGRAPH_TEST_${name.toUpperCase()}_BIN`,
    download: undefined,
    goPackage,
  };
  return await ensureBinary(source, {
    env: process.env,
    log: (line) => process.stdout.write(`${line}\n`),
  });
}

/** Run by itself, a test file may have to build its program first, which takes minutes. */
export const BUILD_TIMEOUT_MS = 30 * 60_000;
