import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Infrastructure, startInfrastructure } from './infrastructure.ts';
import { findFreePorts, type InfrastructurePorts } from './ports.ts';

/** Five free ports for the three servers. */
export async function findInfrastructurePorts(): Promise<InfrastructurePorts> {
  const [temporal = 0, temporalUi = 0, postgres = 0, minio = 0, minioConsole = 0] = await findFreePorts(5);
  return { temporal, temporalUi, postgres, minio, minioConsole };
}

const MEMORY_DIRECTORY = '/dev/shm';
/** A whole test run leaves about 2 GB there. */
const MEMORY_NEEDED = 4 * 2 ** 30;

/** The directory for test data: in memory where there is enough, because databases are copied there ten times as fast. */
function testDataParent(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY_DIRECTORY);
    return bavail * bsize >= MEMORY_NEEDED ? MEMORY_DIRECTORY : tmpdir();
  } catch {
    return tmpdir();
  }
}

/**
 * The three servers for a test run: free ports, a new directory (mode 0700) that stop() removes, no fsync.
 * Tried again once, for another program may take a port between the choice and the start.
 */
export async function startTestInfrastructure(log: (line: string) => void): Promise<Infrastructure> {
  try {
    return await startOnce(log);
  } catch (error) {
    log(`starting the servers failed, trying once more: ${(error as Error).message}`);
    return startOnce(log);
  }
}

async function startOnce(log: (line: string) => void): Promise<Infrastructure> {
  const dataDir = mkdtempSync(join(testDataParent(), 'heliograph-test-'));
  const remove = () => rmSync(dataDir, { recursive: true, force: true, maxRetries: 3 });
  try {
    const ports = await findInfrastructurePorts();
    const infrastructure = await startInfrastructure({ dataDir, ports, durable: false, log });
    return { ...infrastructure, stop: () => infrastructure.stop().finally(remove) };
  } catch (error) {
    remove();
    throw error;
  }
}
