import type { TestProject } from 'vitest/node';
import { startTestInfrastructure } from '../../dev/embedded/test-infrastructure.ts';
import { openDatabase } from '../../src/platform/postgres/database.ts';
import { migrate } from '../../src/platform/postgres/migrate.ts';
import { loadWorkflowBundle } from '../../src/worker/workflow-bundle.ts';
import { silentLogger } from './silent-logger.ts';

declare module 'vitest' {
  interface ProvidedContext {
    infrastructure: {
      postgresUrl: string;
      temporalAddress: string;
      minioUrl: string;
      minioAccessKey: string;
      minioSecretKey: string;
    };
  }
}

/** Name of the migrated database that each test file gets a copy of. */
export const TEMPLATE_DATABASE = 'heliograph_template';

/** Starts PostgreSQL, Temporal and MinIO once for all integration tests, and migrates the template database. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const infrastructure = await startTestInfrastructure(() => {});
  const admin = openDatabase({ url: infrastructure.postgresUrl, poolMax: 2, applicationName: 'test-setup' });
  await admin.raw(`create database ${TEMPLATE_DATABASE}`);
  await admin.destroy();
  const url = new URL(infrastructure.postgresUrl);
  url.pathname = `/${TEMPLATE_DATABASE}`;
  const template = openDatabase({ url: url.href, poolMax: 2, applicationName: 'test-setup' });
  await migrate(template);
  await template.destroy();
  await loadWorkflowBundle(silentLogger);
  project.provide('infrastructure', {
    postgresUrl: infrastructure.postgresUrl,
    temporalAddress: infrastructure.temporalAddress,
    minioUrl: infrastructure.minioUrl,
    minioAccessKey: infrastructure.minioCredentials.accessKey,
    minioSecretKey: infrastructure.minioCredentials.secretKey,
  });
  return () => infrastructure.stop();
}
