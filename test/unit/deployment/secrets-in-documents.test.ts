import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { repositoryFile } from './compose-file.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const DOCUMENTS = ['*.md', 'docs/**/*.md', 'clients/*/README.md', 'examples/**/*.md']
  .flatMap((pattern) => globSync(pattern, { cwd: ROOT }))
  .filter((path) => path !== 'CHANGELOG.md' && !path.startsWith('docs/decisions/'));

/** What is typed: blocks for a shell, and commands within a sentence. */
function commandsIn(document: string): string[] {
  const blocks = [...document.matchAll(/^ *```(?:sh|bash|console)\n([\s\S]*?)^ *```/gm)].map(
    ([, code = '']) => code,
  );
  const prose = document.replaceAll(/^ *```[\s\S]*?^ *```/gm, '');
  const typed = /`((?:\$ |export |[A-Z_]+=|claude |heliograph|admin |curl |npx |docker |kubectl )[^`\n]*)`/g;
  return [...blocks, ...[...prose.matchAll(typed)].map(([, code = '']) => code)];
}

/** A key or token of ours or upstream's as it is, and options that take one as their value. */
const SECRETS = [
  /(?:^|[\s='":])(?:ck_|hp_|whsec_|EAA)[\w…]+/m,
  /--(?:secret|api-key|key|token|access-token|password|pin)[ =](?!-)\S+/,
  /--(?:env|header)[ =]\S*(?:KEY|TOKEN|Bearer)[= ](?!\$)\S+/i,
];

const found = (document: string) =>
  commandsIn(document).flatMap((command) => SECRETS.flatMap((secret) => secret.exec(command)?.[0] ?? []));

test('finds a secret on a command line, and none in a file, a variable or a sentence', () => {
  for (const typed of [
    'claude mcp add x --env HELIOGRAPH_API_KEY=ck_1 -- heliograph mcp',
    'claude mcp add x --header "Authorization: Bearer ck_1"',
    'heliograph verify --secret whsec_1',
    'admin waba add 9 --access-token EAAG…',
    `curl -d '{"accessToken": "EAAG…"}' https://gateway.example`,
    'HELIOGRAPH_WEBHOOK_SECRET=whsec_… python receiver.py',
  ]) {
    expect([typed, found(`\`\`\`sh\n${typed}\n\`\`\`\n`).length > 0]).toEqual([typed, true]);
  }
  expect(found('`heliograph doctor --secret x`')).toHaveLength(1);
  const fine =
    'heliograph verify --secret-file s\nadmin x --access-token-stdin < t\ncurl -H "Authorization: Bearer $KEY"';
  expect(
    found(`A key is \`ck_…\`; with \`--secret\`, it is in the history.\n\`\`\`sh\n${fine}\n\`\`\`\n`),
  ).toEqual([]);
});

test.each(DOCUMENTS)(
  '%s puts no secret on a command line, where the history and the list of processes have it',
  (path) => {
    expect(found(repositoryFile(path))).toEqual([]);
  },
);

/** Every door by which what customers wrote leaves the installation, as its document. */
const DOORS = ['mcp.md', 'cli.md', 'cloud-api.md'];

test('the list of what an erasure does not reach has each door by which data leaves', () => {
  const [, list = ''] = repositoryFile('docs/operators/erasure.md').split('## What is not erased');
  const rows = list.split('\n').filter((line) => line.startsWith('| '));
  for (const door of DOORS) {
    const row = rows.find((one) => one.split('|')[1]?.includes(`(../tenants/${door})`));
    expect([door, row?.split('|')[2]?.trim()]).toEqual([door, expect.stringMatching(/\w{4}/)]);
  }
  for (const word of [
    'backups',
    'object store',
    'Temporal',
    'logs of proxies',
    'servers of tenants',
    'upstream',
    'browsers',
  ]) {
    expect([word, rows.some((row) => row.split('|')[1]?.includes(word))]).toEqual([word, true]);
  }
});
