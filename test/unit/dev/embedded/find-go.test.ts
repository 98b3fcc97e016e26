import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { findGo } from '../../../../dev/embedded/programs.ts';

function folderWithGo(version: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'heliograph-go-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'go'), `#!/bin/sh\necho "go version ${version} linux/amd64"\n`);
  chmodSync(join(folder, 'go'), 0o755);
  return folder;
}

test('a Go that is too old to build our programs, as that of Debian 12, is passed over for a newer one', () => {
  const [old, broken, fresh] = [folderWithGo('go1.19.8'), folderWithGo('devel'), folderWithGo('go1.24.4')];
  const found = findGo({ PATH: [old, broken, fresh].join(delimiter) });
  expect(found).toBe(join(fresh, 'go'));
});

test('alone, it counts as none', () => {
  expect([undefined, '/usr/local/go/bin/go']).toContain(findGo({ PATH: folderWithGo('go1.19.8') }));
});
