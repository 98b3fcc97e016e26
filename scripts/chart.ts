/** `npm run chart`: brings settings and alert rules into the Helm chart. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { settingsSchemas } from './values-schema.ts';

const path = fileURLToPath(new URL('../charts/heliograph/values.schema.json', import.meta.url));
const schema = JSON.parse(readFileSync(path, 'utf8'));
Object.assign(schema.definitions, settingsSchemas());
writeFileSync(path, JSON.stringify(schema, null, 2));
execFileSync('npx', ['biome', 'format', '--write', path], { stdio: 'inherit' });
