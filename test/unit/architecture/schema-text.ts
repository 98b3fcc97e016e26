import { globSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryFile } from '../deployment/compose-file.ts';

const MIGRATIONS = 'src/platform/postgres/migrations';

/** The statements of the first schema and of the migrations after it, each line from its first word on. */
export function schemaText(): string {
  const root = join(import.meta.dirname, '../../..');
  const later = globSync(`${MIGRATIONS}/0*.sql`, { cwd: root }).toSorted();
  return [`${MIGRATIONS}/schema.sql`, ...later].map(repositoryFile).join('\n').replace(/^ +/gm, '');
}
