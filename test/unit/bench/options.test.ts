import { describe, expect, test } from 'vitest';
import { readOptions, UsageError, usage } from '../../../bench/options.ts';
import { parseProcessStat } from '../../../bench/process-usage.ts';
import { listScenarios } from '../../../bench/scenarios.ts';

describe('the options of the benchmark', () => {
  test('without any, every scenario runs', () => {
    expect(readOptions([])?.scenarios).toEqual(listScenarios(false));
  });

  test('without any, the database is 90 days old', () => {
    expect(readOptions([])?.databaseDays).toBe(90);
  });

  test('scenarios are chosen by name, several ways, and run in the order of the list', () => {
    const names = (args: string[]) => readOptions(args)?.scenarios.map(({ name }) => name);
    expect(names(['--scenario', 'flood,message-10', '--scenario', 'statuses'])).toEqual([
      'message-10',
      'flood',
      'statuses',
    ]);
  });

  test('a number of events counts for every scenario', () => {
    expect(readOptions(['--events', '50'])?.scenarios.every(({ count }) => count === 50)).toBe(true);
  });

  test('what makes no sense is named', () => {
    expect(() => readOptions(['--scenario', 'fast'])).toThrow(UsageError);
    expect(() => readOptions(['--scenario', 'fast'])).toThrow(/fast; known are fresh-50,/);
    expect(() => readOptions(['--events', '-3'])).toThrow(UsageError);
    expect(() => readOptions(['--events', 'many'])).toThrow(/--events/);
    expect(() => readOptions(['--unknown'])).toThrow(UsageError);
    expect(() => readOptions(['surplus'])).toThrow(UsageError);
  });

  test('the help names every scenario', () => {
    expect(readOptions(['--help'])).toBeNull();
    for (const { name } of listScenarios(true)) expect(usage()).toContain(`  ${name} `);
  });
});

test("a process's CPU time counts its ended children, whatever its name holds", () => {
  const line = '4711 (a) b (c) S 42 1 1 0 -1 4194560 100 0 0 0 7 5 30 20 20 0 1 0 900 1000 200';
  expect(parseProcessStat(line)).toEqual({ pid: 4711, parentPid: 42, cpuMs: 620 });
});
