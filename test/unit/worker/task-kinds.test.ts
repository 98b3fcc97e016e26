import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { TASK_KINDS } from '../../../src/worker/task-kinds.ts';
import * as workflows from '../../../src/workflows/bundle-entry.ts';
import { repositoryFile } from '../deployment/compose-file.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Workflows of deliveries and of the schedule: other rows and loops start them again. */
const NO_TASKS = ['deliverEvent', 'deliverSession', 'endpointTrouble', 'refreshAllNumbers'];

const DESCRIPTION = /^export const (\w+): (?:TaskKind|Readonly<Record<\w+, TaskKind>>) =/gm;

test('every workflow that a task stands for is registered exactly once', () => {
  const types = TASK_KINDS.map(({ workflowType }) => workflowType);
  expect(types.toSorted()).toEqual(
    Object.keys(workflows)
      .filter((name) => !NO_TASKS.includes(name))
      .toSorted(),
  );
  expect(Object.keys(workflows)).toEqual(expect.arrayContaining(NO_TASKS));
});

test('the worker registers every description of a room', () => {
  const described = globSync('src/**/*.ts', { cwd: ROOT }).flatMap((path) =>
    [...repositoryFile(path).matchAll(DESCRIPTION)].flatMap(([, name = '']) => name),
  );
  const registry = repositoryFile('src/worker/task-kinds.ts');
  const list = registry.slice(registry.indexOf('TASK_KINDS: readonly TaskKind[] ='));
  expect(described).not.toEqual([]);
  for (const name of described) expect(list.split(name), name).toHaveLength(2);
});

test('a kind says what the Temporal UI shows, in 400 bytes at most', () => {
  for (const { summary } of TASK_KINDS) {
    expect(summary).not.toBe('');
    expect(Buffer.byteLength(summary)).toBeLessThanOrEqual(400);
  }
});
