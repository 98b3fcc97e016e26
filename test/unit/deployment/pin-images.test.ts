import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const SCRIPT = fileURLToPath(new URL('../../../deploy/pin-images.sh', import.meta.url));
const DIGEST = `sha256:${'0a'.repeat(32)}`;

/** As Compose and Docker write them: one image of a registry, one of a mirror too, one built here, and the service's. */
const DOCKER = `#!/bin/sh
case "$*" in
  'compose config') cat << YAML
name: heliograph
services:
  api:
    image: registry.example/heliograph:1
  object-store:
    image: heliograph-versitygw:1.8.0
  postgres:
    environment:
      image: no image
    image: postgres:18
  temporal-ui:
    image: registry.example:5000/temporalio/ui:2.49.1@sha256:1234
networks:
  image: {}
YAML
    ;;
  *postgres*) [ -n "$NONE" ] || printf 'mirror.example/postgres@sha256:ffff\\npostgres@${DIGEST}\\n' ;;
  *temporalio*) [ -n "$NONE" ] || echo 'registry.example:5000/temporalio/ui@${DIGEST}' ;;
esac
`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pin-'));
  for (const name of ['deploy', 'bin']) mkdirSync(join(folder, name));
  cpSync(SCRIPT, join(folder, 'deploy/pin-images.sh'));
  writeFileSync(join(folder, 'bin/docker'), DOCKER, { mode: 0o755 });
});
afterEach(() => rmSync(folder, { recursive: true }));

function pin(none: string) {
  const PATH = `${join(folder, 'bin')}:${process.env.PATH}`;
  const env = { ...process.env, PATH, NONE: none };
  return spawnSync('sh', ['deploy/pin-images.sh'], { cwd: folder, encoding: 'utf8', env });
}

describe('deploy/pin-images.sh', () => {
  test('pins what has a digest of its registry, and nothing that is built here', () => {
    const { status, stdout } = pin('');
    expect(status).toBe(0);
    expect(parse(stdout)).toEqual({
      services: {
        postgres: { image: `postgres:18@${DIGEST}` },
        'temporal-ui': { image: `registry.example:5000/temporalio/ui:2.49.1@${DIGEST}` },
      },
    });
  });

  test('writes no file that Compose would refuse where nothing can be pinned', () => {
    const { status, stdout, stderr } = pin('yes');
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toContain('no image here has a digest');
  });
});
