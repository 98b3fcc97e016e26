import { expect, test } from 'vitest';
import { documentBlocks } from '../../support/document-blocks.ts';
import { repositoryFile } from './compose-file.ts';

/** Where blocks are run: a name in the comment before a block, or the document and how the block begins. */
const RUN_BY_NAME: readonly { name: RegExp; test: string }[] = [
  { name: /^(file|run): /, test: 'test/acceptance/quick-starts.test.ts' },
  { name: /^(receiver|start): (express|fastify)/, test: 'test/acceptance/node-receivers.test.ts' },
  { name: /^(receiver|start): go/, test: 'test/acceptance/go-receivers.test.ts' },
  { name: /^code: n8n/, test: 'test/unit/client/n8n-receiver.test.ts' },
  { name: /^(receiver|start): /, test: 'test/acceptance/python-receivers.test.ts' },
  { name: /^recipients: /, test: 'test/unit/messages/broadcasts/recipient-file.test.ts' },
  { name: /^example: endpoint alert$/, test: 'test/unit/endpoints/alert-envelope.test.ts' },
  { name: /^example: /, test: 'test/unit/deployment/webhook-docs.test.ts' },
];
const RUN_BY_BEGINNING: readonly [document: string, beginning: string][] = [
  ['api.md', 'curl -s '],
  ['api.md', 'curl -sN'],
  ['api.md', 'POST /api/external/messages'],
  ['api.md', '{"type": "pix_dynamic_code"'],
  ['api.md', 'npm run sandbox -- fault'],
  ['api.md', '{\n  "error"'],
  ['cli.md', 'npm install --global'],
  ['cli.md', 'heliograph listen'],
  ['cli.md', 'heliograph trigger'],
  ['cli.md', 'heliograph verify'],
  ['cloud-api.md', 'curl -s'],
  ['cloud-api/libraries.md', 'from pywa'],
  ['cloud-api/libraries.md', 'from heyoo'],
  ['cloud-api/libraries.md', 'import { WhatsAppAPI }'],
  ['cloud-api/libraries.md', 'import { WhatsAppClient }'],
  ['cloud-api/n8n.md', '{\n  "messaging_product"'],
  ['customer-data.md', 'jq -cSj'],
  ['mcp.md', '{\n  "mcpServers"'],
  ['mcp.md', '{\n  "inputs"'],
  ['mcp.md', 'heliograph login'],
  ['mcp.md', 'heliograph mcp'],
  ['signatures.md', 'import { Webhook }'],
  ['signatures.md', 'import os'],
  ['signatures.md', '$key ='],
  ['signatures.md', 'import { createPublicKey'],
  ['endpoint-options.md', '{ "filter"'],
  ['endpoint-options.md', '{ "orderScope"'],
];

/** Blocks that nothing runs, each with the reason. */
const NOT_RUN: readonly [document: string, beginning: string, reason: string][] = [
  [
    'cloud-api/chatwoot.md',
    '# config/initializers',
    'Ruby within an application of others; the calls that it leads here are replayed by products.test.ts',
  ],
  [
    'mcp.md',
    'claude mcp add heliograph',
    'a program of others that needs an account; the command behind -- is compared with the JSON',
  ],
  [
    'mcp.md',
    'HELIOGRAPH_API_KEY="$(cat',
    'a program of others that needs an account; its address and header are those that the test of --http sends',
  ],
  [
    'temporal.md',
    'pip install temporalio',
    'test/integration/examples/temporal-recipe.test.ts starts receiver.py with these variables where temporalio is installed',
  ],
  ['signatures.md', 'key       =', 'pseudo-code; quick-start/curl.md computes the same, and is run'],
  [
    'signatures.md',
    'ssl_client_certificate',
    'a fragment of a configuration of nginx; test/integration has client certificates on a real TLS server',
  ],
];

const matches = (block: { document: string; code: string }, document: string, beginning: string) =>
  block.document === document && block.code.startsWith(beginning);

test.each(documentBlocks())(
  'the block of $document that begins with $code is run, or has a reason',
  (block) => {
    const byName = RUN_BY_NAME.find(({ name }) => block.marker !== null && name.test(block.marker));
    const ways = [
      byName?.test,
      ...RUN_BY_BEGINNING.filter(([document, beginning]) => matches(block, document, beginning)),
      ...NOT_RUN.filter(([document, beginning]) => matches(block, document, beginning)),
    ].filter((way) => way !== undefined);
    expect(ways).toHaveLength(1);
  },
);

test('each of these blocks exists, and the acceptance tests name those that they run', () => {
  const blocks = documentBlocks();
  for (const [document, beginning] of [...RUN_BY_BEGINNING, ...NOT_RUN]) {
    expect(
      blocks.some((block) => matches(block, document, beginning)),
      `${document}: ${beginning}`,
    ).toBe(true);
  }
  const acceptance = ['document-blocks', 'cloud-api-blocks', 'live-blocks']
    .map((name) => repositoryFile(`test/acceptance/${name}.test.ts`))
    .join('\n');
  for (const [document, beginning] of RUN_BY_BEGINNING) {
    expect(acceptance.replaceAll('\\n', '\n'), beginning).toMatch(
      new RegExp(
        `blocks?That\\w+\\('${document}', ['"\`]${beginning.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')}`,
      ),
    );
  }
  for (const { test: file } of RUN_BY_NAME) expect(repositoryFile(file).length).toBeGreaterThan(0);
  const quickStarts = repositoryFile('test/acceptance/quick-starts.test.ts');
  for (const { marker } of blocks) {
    const [, name] = /^run: (\S+)$/.exec(marker ?? '') ?? [];
    if (name !== undefined) expect(quickStarts).toContain(`'${name}'`);
  }
});
