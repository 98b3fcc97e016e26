import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { OpenApiDocument } from '../../test/support/openapi-document.ts';
import { BY_HAND, documentForGo, messagesForGo } from './document-for-go.ts';

const run = promisify(execFile);

type Union = { anyOf: { $ref: string }[] };

const GENERATOR = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2';

/** Writes the generated part of the Go client to a directory; it needs Go. */
export async function generateGoClient(given: OpenApiDocument, directory: string): Promise<void> {
  const document = documentForGo(given);
  const { anyOf } = (given.components.schemas as Record<string, unknown>).MessageToSend as Union;
  const names = anyOf.map(({ $ref }) => $ref.slice('#/components/schemas/'.length));
  const messages = names.filter((name) => !BY_HAND.schemas.includes(name));
  const folder = await mkdtemp(join(tmpdir(), 'heliograph-go-client-'));
  try {
    const [input, config] = [join(folder, 'openapi.json'), join(folder, 'config.json')];
    await writeFile(input, JSON.stringify(document));
    await writeFile(config, JSON.stringify(await configuration(join(directory, 'api.gen.go'))));
    await run('go', ['run', GENERATOR, '-config', config, input], {
      cwd: folder,
      env: { ...process.env, GOFLAGS: '-mod=mod' },
    });
    const beside = join(directory, 'messages.gen.go');
    const generated = await readFile(join(directory, 'api.gen.go'), 'utf8');
    await writeFile(beside, messagesForGo(document, messages, generated));
    await run('gofmt', ['-w', beside]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function configuration(output: string): Promise<object> {
  const operations = await readFile(new URL('operations.tmpl', import.meta.url), 'utf8');
  return {
    package: 'heliograph',
    output,
    generate: { models: true, client: true },
    compatibility: { 'always-prefix-enum-values': true },
    'output-options': {
      'skip-prune': true,
      'skip-enum-validate': true,
      'name-normalizer': 'ToCamelCaseWithInitialisms',
      'prefer-skip-optional-pointer-on-container-types': true,
      'exclude-schemas': BY_HAND.schemas,
      'user-templates': {
        'client.tmpl': operations,
        'client-with-responses.tmpl': '// Made by scripts/generate-client.ts.\n',
      },
    },
  };
}
