import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { repositoryFile } from './compose-file.ts';

const DEPLOY = fileURLToPath(new URL('../../../deploy', import.meta.url));

/** Writes down how it is called, and what psql is told; Temporal's databases are there. */
const DOCKER = `#!/bin/sh
echo "$*" >> "$FOLDER/calls"
case "$*" in
  'compose config --services') printf 'api\\nworker\\npostgres\\ntemporal\\nobject-store\\n' ;;
  'compose ps '*) echo id ;;
  *pg_database*) echo 1 ;;
  *psql*) cat >> "$FOLDER/calls" ;;
  *reconcile*) cat "$FOLDER/report"; exit "$(cat "$FOLDER/code")" ;;
esac
`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'restore-'));
  cpSync(DEPLOY, join(folder, 'deploy'), { recursive: true });
  mkdirSync(join(folder, 'backup'));
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'backup/heliograph.dump'), 'dump');
  writeFileSync(join(folder, 'bin/docker'), DOCKER, { mode: 0o755 });
});
afterEach(() => rmSync(folder, { recursive: true }));

function restore(report: string, code: number, ...options: string[]) {
  writeFileSync(join(folder, 'report'), report);
  writeFileSync(join(folder, 'code'), String(code));
  const { status, stderr } = spawnSync('sh', ['deploy/restore.sh', ...options, 'backup'], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, FOLDER: folder, PATH: `${join(folder, 'bin')}:${process.env.PATH}` },
  });
  const calls = existsSync(join(folder, 'calls'))
    ? readFileSync(join(folder, 'calls'), 'utf8').split('\n')
    : [];
  return { status, stderr, calls };
}

const RECONCILE = 'compose run --rm -T --no-deps worker node src/main.ts reconcile --fix --rewound';
const START = 'compose up --detach';

describe('deploy/restore.sh', () => {
  test('nothing writes before reconcile: api and worker start after it', () => {
    const { status, calls } = restore('Nothing is left to do.', 0);
    expect(status).toBe(0);
    const stopped = calls.indexOf('compose stop api worker');
    const reconciled = calls.indexOf(RECONCILE);
    const migrated = calls.findIndex((call) => call.endsWith(' migrate'));
    expect(stopped).toBe(1);
    expect(migrated).toBeGreaterThan(stopped);
    expect(reconciled).toBeGreaterThan(migrated);
    expect(calls.indexOf(START)).toBeGreaterThan(reconciled);
    const earlier = calls.slice(0, reconciled).filter((call) => /^compose (up|start|run)/.test(call));
    expect(earlier.filter((call) => call === START || / (api|worker)\b/.test(call))).toEqual([]);
  });

  test('Temporal keeps what it has: by it reconcile knows what went out since', () => {
    const { calls } = restore('Nothing is left to do.', 0);
    expect(calls.filter((call) => call.startsWith('drop database'))).toEqual([
      'drop database if exists "heliograph" with (force);',
    ]);
  });

  test('unless it is to be emptied', () => {
    const { status, calls } = restore('Nothing is left to do.', 0, '--empty-temporal');
    expect(status).toBe(0);
    expect(calls.filter((call) => call.startsWith('drop database'))).toEqual([
      'drop database if exists "heliograph" with (force);',
      'drop database if exists "temporal" with (force);',
      'drop database if exists "temporal_visibility" with (force);',
    ]);
  });

  test('files without rows keep nobody from starting', () => {
    const { status, calls } = restore('object_without_row 3\n\nSomething is left to do.', 1);
    expect(status).toBe(0);
    expect(calls).toContain(START);
  });

  test.each([
    ['cannot be finished', 'send_already_made NOT FINISHED: away\n\nSomething is left to do.'],
    ['fails', ''],
  ])('where reconcile %s, nothing starts, and the operator is told how to go on', (_name, report) => {
    const { status, stderr, calls } = restore(report, 1);
    expect(status).toBe(1);
    expect(stderr).toContain('reconcile --fix --rewound && docker compose up --detach');
    expect(calls).toContain(RECONCILE);
    expect(calls).not.toContain(START);
  });

  test('the words that it looks for are those of reconcile', () => {
    const source = repositoryFile('src/ops/reconcile/commands/reconcile-command.ts');
    for (const words of ['NOT FINISHED', 'Nothing is left to do.', 'Something is left to do.']) {
      expect(source).toContain(words);
    }
  });
});
