import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { OpenApiDocument } from '../../test/support/openapi-document.ts';
import { BY_HAND, documentForGo, messagesForGo, sharedSchemas } from './document-for-go.ts';

const run = promisify(execFile);

type Union = { anyOf: { $ref: string }[] };

const GENERATOR = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2';

/** Writes the generated part of the Go client, one package for both APIs, to a directory; it needs Go. */
export async function generateGoClient(
  given: OpenApiDocument,
  platform: OpenApiDocument,
  directory: string,
): Promise<void> {
  const document = documentForGo(given);
  const ofPlatform = documentForGo(platform);
  const { anyOf } = (given.components.schemas as Record<string, unknown>).MessageToSend as Union;
  const names = anyOf.map(({ $ref }) => $ref.slice('#/components/schemas/'.length));
  const messages = names.filter((name) => !BY_HAND.schemas.includes(name));
  const folder = await mkdtemp(join(tmpdir(), 'heliograph-go-client-'));
  try {
    await writeGo(document, folder, {
      output: join(directory, 'api.gen.go'),
      excluded: BY_HAND.schemas,
      operations: await operationsOn('Client', 'c'),
    });
    await writeGo(ofPlatform, folder, {
      output: join(directory, 'platform.gen.go'),
      excluded: [...BY_HAND.schemas, ...sharedSchemas(ofPlatform, document)],
      operations: await operationsOn('Platform', 'c.client'),
    });
    const beside = join(directory, 'messages.gen.go');
    const generated = await readFile(join(directory, 'api.gen.go'), 'utf8');
    await writeFile(beside, messagesForGo(document, messages, generated));
    await run('gofmt', ['-w', beside]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The template of the methods of a type, whose requests `api` makes. */
async function operationsOn(type: string, api: string): Promise<string> {
  const template = await readFile(new URL('operations.tmpl', import.meta.url), 'utf8');
  return template.replaceAll('{{CLIENT}}', type).replaceAll('{{API}}', api);
}

type Output = { output: string; excluded: readonly string[]; operations: string };

async function writeGo(document: OpenApiDocument, folder: string, output: Output): Promise<void> {
  const [input, config] = [join(folder, 'openapi.json'), join(folder, 'config.json')];
  await writeFile(input, JSON.stringify(document));
  await writeFile(config, JSON.stringify(configuration(output)));
  await run('go', ['run', GENERATOR, '-config', config, input], {
    cwd: folder,
    env: { ...process.env, GOFLAGS: '-mod=mod' },
  });
}

function configuration({ output, excluded, operations }: Output): object {
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
      'exclude-schemas': excluded,
      'user-templates': {
        'client.tmpl': operations,
        'client-with-responses.tmpl': '// Made by scripts/generate-client.ts.\n',
      },
    },
  };
}
