/**
 * A stand-in for src/main.ts: `start` runs the embedded stack with the processes below, `api` answers with
 * the settings it got, `printer` writes to the terminal, `broken` crashes soon after each start.
 */
import { createServer } from 'node:http';
import pg from 'pg';
import { answersOk } from '../../../../dev/embedded/ports.ts';
import { type ApplicationPart, type EmbeddedContext, startEmbedded } from '../../../../dev/embedded/start.ts';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import type { EmbeddedTenant } from '../../../../src/platform/local-stack/embedded-description.ts';

const [role = '', dataDir = '', ...flags] = process.argv.slice(2);

async function seed(context: EmbeddedContext): Promise<EmbeddedTenant[]> {
  const client = new pg.Client({ connectionString: context.infrastructure.postgresUrl });
  await client.connect();
  await client.query('create table if not exists starts (at timestamptz default now())');
  await client.query('insert into starts default values');
  await client.end();
  if (context.previousTenants.length > 0) return [...context.previousTenants];
  return [
    {
      userId: 1,
      businessName: 'Demo',
      wabaId: '900000000000101',
      phoneNumberIds: ['800000000000111'],
      apiKey: crypto.randomUUID(),
      endpointId: 'endpoint',
      webhookSecret: 'whsec_demo',
    },
  ];
}

function parts({ ports }: EmbeddedContext): ApplicationPart[] {
  const api = { name: 'api', args: ['api'], isReady: () => answersOk(`http://127.0.0.1:${ports.api}/`) };
  const printer = { name: 'printer', args: ['printer'], echo: true, isReady: async () => true };
  const broken = { name: 'broken', args: ['broken'], isReady: async () => true };
  return flags.includes('--broken') ? [api, broken] : [api, printer];
}

function serve(): void {
  const { api, database } = loadConfig(process.env);
  const body = JSON.stringify({
    port: api.port,
    databaseUrl: database.url,
    mode: process.env.HELIOGRAPH_MODE,
  });
  createServer((_request, response) => response.end(body)).listen(api.port, api.host);
}

switch (role) {
  case 'start': {
    const fresh = flags.includes('--fresh');
    const mainScript = import.meta.filename;
    process.exit(await startEmbedded({ dataDir, fresh, mainScript, afterInfrastructure: seed, parts }));
    break;
  }
  case 'api':
    serve();
    break;
  case 'printer':
    process.stdout.write('printed by a part\n');
    setInterval(() => undefined, 1_000);
    break;
  default:
    process.stderr.write('broken for good\n');
    setTimeout(() => process.exit(5), 50);
}
