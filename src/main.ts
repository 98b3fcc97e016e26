#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import packageJson from '../package.json' with { type: 'json' };
import { adoptPlatformSettings } from './platform/config/platform-variables.ts';
import { PortNotOpenedError } from './platform/http/opened-port.ts';

/** What runs on holds all that the cache has for as long as it runs: 10 MiB and more per process. */
const RUNS_ON = ['api', 'worker', 'all', 'run'];

/** Halves the time until a command begins; where nothing can be written nothing is kept. */
if (!RUNS_ON.includes(process.argv[2] ?? '')) {
  enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url)));
}

/** Commands load their code when they run, so that the command line starts at once. */
const program = new Command('heliograph-server')
  .description('Gateway between the WhatsApp Business Platform and your own server')
  .version(packageJson.version)
  .showHelpAfterError('(add --help for how to use it)');

/** The production image has no development tools. */
const isCheckout = existsSync(new URL('../dev', import.meta.url));

/** In an image every command reads what the platform sets, so that those of operators work beside `run`. */
const adopted = process.argv[2] === 'run' || !isCheckout ? adoptPlatformSettings(process.env) : [];

if (isCheckout) {
  program
    .command('start')
    .description('run everything embedded: PostgreSQL, Temporal, MinIO, API, worker, sandbox, sample tenant')
    .option('--fresh', 'start empty: removes the data directory first', false)
    .option('--https', 'links in responses begin with https; trust the certificate that is printed', false)
    .option('--data-dir <path>', 'where state is kept', '.data')
    .action(async (options: { fresh: boolean; https: boolean; dataDir: string }) => {
      const { runEmbedded } = await import('../dev/start.ts');
      process.exit(await runEmbedded(options));
    });
}

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
  .action(async () => {
    const { serveAll, startOrExit } = await import('./serve.ts');
    await serveAll(await startOrExit());
  });

program
  .command('run')
  .description('migrate, then run API and worker in one process: all that one container needs')
  .action(async () => (await import('./migrate.ts')).migrateAndServe(adopted));

program
  .command('migrate')
  .description('bring the database schema and the search attributes of Temporal to this version')
  .action(async () => (await import('./migrate.ts')).runMigrations());

program
  .command('doctor')
  .description('check settings, servers, keys, certificates and backlog, and say what to do')
  .option('--json', 'print JSON for programs', false)
  .option(
    '--data-dir <path>',
    'state of the npm start to check, unless the environment names a database',
    '.data',
  )
  .action(async (options: { json: boolean; dataDir: string }) => {
    const { runDoctor } = await import('./ops/health/doctor.ts');
    const { findOpenAlerts } = await import('./ops/alerts/open-alerts.ts');
    const { findSecrets } = await import('./ops/secrets/secret-findings.ts');
    const others = { findAlerts: findOpenAlerts, findSecrets };
    process.exitCode = await runDoctor(process.env, options, others);
  });

program
  .command('bundle-workflows')
  .description('bundle workflow code ahead of time, for images that are read-only when they run')
  .action(async () => (await import('./worker/workflow-bundle.ts')).bundleWorkflows());

const name = process.argv[2];
const isHelp = name === undefined || name.startsWith('-') || name === 'help';
if (name === 'admin' || isHelp) {
  program.addCommand((await import('./admin.ts')).buildAdminCommand());
}
if (name === 'reconcile' || isHelp) {
  const { reconcileCommand } = await import('./ops/reconcile/commands/reconcile-command.ts');
  const { TASK_KINDS } = await import('./worker/task-kinds.ts');
  program.addCommand(reconcileCommand(TASK_KINDS));
}
if (isCheckout && (name === 'sandbox' || isHelp)) {
  program.addCommand((await import('../dev/sandbox/cli.ts')).createSandboxCommand());
}

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof PortNotOpenedError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(2);
}
