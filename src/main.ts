#!/usr/bin/env node
import { Command } from 'commander';
import packageJson from '../package.json' with { type: 'json' };

/** Commands load their code only when they run: a command line answers at once. */
const program = new Command('heliograph')
  .description('Gateway between the WhatsApp Business Platform and your own server')
  .version(packageJson.version)
  .showHelpAfterError('(add --help for how to use it)');

program
  .command('start')
  .description('run everything embedded: PostgreSQL, Temporal, MinIO, API, worker, sandbox, sample tenant')
  .option('--fresh', 'start empty: removes the data directory first', false)
  .option('--data-dir <path>', 'where state is kept', '.data')
  .action(async (options: { fresh: boolean; dataDir: string }) => {
    const { runEmbedded } = await import('./dev/start.ts');
    process.exit(await runEmbedded(options));
  });

program
  .command('api')
  .description('run the API process')
  .action(async () => (await import('./serve.ts')).serveApi());

program
  .command('worker')
  .description('run the worker process')
  .action(async () => (await import('./serve.ts')).serveWorker());

program
  .command('all')
  .description('run API and worker in one process')
  .action(async () => (await import('./serve.ts')).serveAll());

program
  .command('migrate')
  .description('bring the database schema and the search attributes of Temporal to this version')
  .action(async () => (await import('./migrate.ts')).runMigrations());

program
  .command('bundle-workflows')
  .description('bundle workflow code ahead of time, for images that are read-only when they run')
  .action(async () => (await import('./worker/bundle-workflows.ts')).bundleWorkflows());

const face = process.argv[2];
if (face === 'admin' || face === undefined || face.startsWith('-') || face === 'help') {
  program.addCommand((await import('./admin.ts')).buildAdminCommand());
}
if (face === 'sandbox' || face === undefined || face.startsWith('-') || face === 'help') {
  program.addCommand((await import('./dev/sandbox/cli.ts')).createSandboxCommand());
}

await program.parseAsync();
