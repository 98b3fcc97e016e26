import type { Client } from '@temporalio/client';
import { afterAll, beforeAll } from 'vitest';
import { loadConfig } from '../../src/platform/config/config.ts';
import { connectTemporal } from '../../src/platform/temporal/worker-connection.ts';
import { testSettings } from './test-settings.ts';

/** Connects the tests of a file to Temporal; the function returned gives the client while they run. */
export function useTemporal(): () => Client {
  let connected: Awaited<ReturnType<typeof connectTemporal>> | null = null;
  beforeAll(async () => {
    connected = await connectTemporal(loadConfig(testSettings('postgres://unused')).temporal);
  });
  afterAll(() => connected?.connection.close());
  return () => {
    if (connected === null) throw new Error('Temporal is connected while tests run');
    return connected.client;
  };
}
