import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PROJECT = fileURLToPath(new URL('../../../', import.meta.url));

/** The packages of a requirements file, each with its version. */
function requirementsIn(...path: string[]): string[] {
  return readFileSync(join(PROJECT, ...path), 'utf8')
    .trim()
    .split('\n');
}

const receiver = (name: string) => requirementsIn('examples/receivers', name, 'requirements.txt');
const checks = () => requirementsIn('clients/python/requirements-checks.txt');

/** What the Pythons of the tests have, by the name of each. */
export const PYTHON_PACKAGES = {
  webhooks: () => ['standardwebhooks==1.1.0'],
  schemathesis: () => ['schemathesis==4.32.5'],
  pywa: () => ['pywa==4.5.0'],
  heyoo: () => ['heyoo==0.1.2'],
  client: () => [...checks(), ...receiver('fastapi')],
  'client-packing': () => requirementsIn('clients/python/requirements-packing.in'),
  // The client itself is found beside its source.
  receivers: () => [
    ...receiver('fastapi'),
    ...receiver('django'),
    ...checks().filter((one) => /^(httpx|pydantic)=/.test(one)),
  ],
} as const;
