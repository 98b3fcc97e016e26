import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** What tenants read and copy: documents, examples, clients, and the commands and programs that pages show. */
const SHOWN = [
  ...[
    '*.md',
    'docs/README.md',
    'docs/tour.md',
    'docs/tenants/**/*.md',
    'clients/*/README.md',
    'examples/**/*',
  ],
  ...[
    'clients/*/examples/*',
    'clients/cli/src/*.ts',
    'src/api/portal/**/*.ts',
    'dev/console/*.ts',
    'dev/embedded/*.ts',
  ],
].flatMap((pattern) =>
  globSync(pattern, { cwd: ROOT, exclude: (path) => /node_modules|CHANGELOG/.test(path) }),
);

/** How a program or a shell reads a variable of the environment, or a line sets one. */
const READ =
  /(?:\$\{?|environ(?:\.get)?[[(]["']|[gG]etenv\(["']|process\.env\.|env\[["']|^(?:export )?|const \{ )([A-Z][A-Z0-9_]*(?:SECRET|API_KEY))\b/gm;

test('what tenants read has one name for the API key and one for the secret of an endpoint', () => {
  const found = new Map<string, string[]>();
  for (const path of SHOWN.filter((one) => /\.\w+$/.test(one))) {
    for (const [, name = ''] of readFileSync(`${ROOT}${path}`, 'utf8').matchAll(READ)) {
      found.set(name, [...(found.get(name) ?? []), path]);
    }
  }
  // The app secret of an endpoint in upstream's format is another one.
  found.delete('APP_SECRET');
  const {
    HELIOGRAPH_API_KEY: keys,
    HELIOGRAPH_WEBHOOK_SECRET: secrets,
    ...others
  } = Object.fromEntries(found);
  expect(keys?.length).toBeGreaterThan(10);
  expect(secrets?.length).toBeGreaterThan(10);
  expect(others).toEqual({});
});
