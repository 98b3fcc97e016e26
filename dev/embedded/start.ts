import { join, resolve } from 'node:path';
import pc from 'picocolors';
import { NODE_FLAGS, PROCESS_ENVIRONMENT } from '../../src/platform/config/process-options.ts';
import { DEVELOPMENT_APP_SECRET, DEVELOPMENT_VERIFY_TOKEN } from '../../src/platform/config/weak-secrets.ts';
import {
  descriptionFile,
  type EmbeddedDescription,
  type EmbeddedPortalUser,
  type EmbeddedTenant,
} from '../../src/platform/local-stack/embedded-description.ts';
import { ensureCertificate, type LocalCertificate } from './certificate.ts';
import { openDataDirectory, recordFileOf } from './data-directory.ts';
import { embeddedEnvironment, embeddedUrls } from './embedded-environment.ts';
import { type Infrastructure, type LateServer, startInfrastructure } from './infrastructure.ts';
import {
  embeddedPortalUsers,
  keepTenants,
  readKeptTenants,
  removeDescription,
  writeDescription,
} from './kept-files.ts';
import type { MinioCredentials } from './minio.ts';
import { assertPortsFree, type EmbeddedPorts, readPorts } from './ports.ts';
import type { PartDefinition } from './process-part.ts';
import { createSupervisor, type Supervisor } from './supervisor.ts';

/** One of our own processes, run as `node <mainScript> <args>`. */
export interface ApplicationPart {
  readonly name: string;
  readonly args: readonly string[];
  /** What else embedded.json lists it as. */
  readonly aliases?: readonly string[];
  /** Goes over the environment that all parts get. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Rejecting counts as not ready yet. */
  readonly isReady: () => Promise<boolean>;
  /** Prints its output in the terminal too (coloured there if the part colours it). */
  readonly echo?: boolean;
  readonly stopGraceMs?: number;
}

/** What stands when the three servers are ready. */
export interface EmbeddedContext {
  readonly dataDir: string;
  readonly ports: EmbeddedPorts;
  readonly infrastructure: Infrastructure;
  /** Every HELIOGRAPH_* setting that the application's processes need. Holds secrets. */
  readonly environment: Readonly<Record<string, string>>;
  /** From an earlier run on the same data: their API keys are stored nowhere else in clear. */
  readonly previousTenants: readonly EmbeddedTenant[];
  /** Who shall be able to sign in to the portal; afterInfrastructure makes them. */
  readonly portalUsers: readonly EmbeddedPortalUser[];
  readonly log: (line: string) => void;
}

export interface StartEmbeddedOptions {
  readonly dataDir: string;
  /** Starts empty. */
  readonly fresh: boolean;
  /** Links in responses and webhooks begin with https, for which programs must trust our certificate. */
  readonly https?: boolean;
  /** src/main.ts */
  readonly mainScript: string;
  /** Migrates and seeds; returns the tenants for embedded.json. */
  readonly afterInfrastructure: (context: EmbeddedContext) => Promise<readonly EmbeddedTenant[]>;
  /** In the order in which they are stopped from the last to the first. They are started side by side. */
  readonly parts: (context: EmbeddedContext) => readonly ApplicationPart[];
}

interface Session {
  readonly options: StartEmbeddedOptions;
  readonly dataDir: string;
  readonly ports: EmbeddedPorts;
  readonly supervisor: Supervisor;
  readonly log: (line: string) => void;
  parts: readonly ApplicationPart[];
  description: EmbeddedDescription | undefined;
}

/**
 * Runs the whole stack until a signal or a failure ends it; resolves with the exit code, with which the
 * caller has to exit (something of an interrupted start may still run). Every failure has been printed by then.
 */
export async function startEmbedded(options: StartEmbeddedOptions): Promise<number> {
  const dataDir = resolve(options.dataDir);
  // The terminal may be closed before everything is stopped.
  process.stdout.on('error', () => undefined);
  try {
    const ports = readPorts(process.env);
    const lock = await openDataDirectory(dataDir, { fresh: options.fresh, log });
    try {
      await assertPortsFree(ports);
      return await runSession(options, dataDir, ports);
    } finally {
      lock.release();
    }
  } catch (error) {
    log((error as Error).message);
    return 1;
  }
}

async function runSession(
  options: StartEmbeddedOptions,
  dataDir: string,
  ports: EmbeddedPorts,
): Promise<number> {
  const ended = Promise.withResolvers<number>();
  const supervisor = createSupervisor({
    log,
    recordFile: recordFileOf(dataDir),
    onPidChange: () => publish(session),
    onGiveUp: (error) => {
      log(error.message);
      ended.resolve(1);
    },
  });
  const session: Session = { options, dataDir, ports, supervisor, log, parts: [], description: undefined };
  const release = onStopSignals({
    onFirst: () => {
      log('stopping everything (once more Ctrl-C kills it)');
      void supervisor.stop().then(() => ended.resolve(session.description === undefined ? 130 : 0));
    },
    onSecond: () => supervisor.kill(),
  });
  try {
    // A signal ends the wait at once, whatever start-up is busy with.
    return await Promise.race([ended.promise, startAll(session).then(() => ended.promise)]);
  } catch (error) {
    log((error as Error).message);
    await supervisor.stop();
    return 1;
  } finally {
    release();
    publish(session, {});
  }
}

async function startAll(session: Session): Promise<void> {
  const { options, dataDir, ports, supervisor } = session;
  log(`data directory: ${dataDir}`);
  removeDescription(dataDir);
  const [infrastructure, certificate] = await Promise.all([
    startInfrastructure({ dataDir, ports, durable: true, log, supervisor, joinLater: true }),
    ensureCertificate(join(dataDir, 'tls')),
  ]);
  const { apiUrl, httpsUrl } = embeddedUrls(ports);
  const publicUrl = options.https === true ? httpsUrl : apiUrl;
  const context: EmbeddedContext = {
    dataDir,
    ports,
    infrastructure,
    environment: embeddedEnvironment(dataDir, ports, infrastructure, { certificate, publicUrl }),
    previousTenants: readKeptTenants(dataDir),
    portalUsers: embeddedPortalUsers(dataDir),
    log,
  };
  const tenants = await options.afterInfrastructure(context);
  keepTenants(dataDir, tenants);
  const parts = options.parts(context);
  session.parts = parts;
  const definitions = parts.map((part) => partDefinition(part, context, options.mainScript));
  await Promise.all(definitions.map((definition) => supervisor.start(definition)));
  session.description = describe(context, certificate, tenants);
  publish(session);
  const banner = readyBanner(
    {
      description: session.description,
      minioConsoleUrl: infrastructure.minioConsoleUrl,
      minioCredentials: infrastructure.minioCredentials,
      descriptionFile: descriptionFile(dataDir),
      logDirectory: join(dataDir, 'logs'),
      startSeconds: process.uptime(),
      missing: infrastructure.missing,
    },
    isTerminal(),
  );
  process.stdout.write(banner);
}

function partDefinition(part: ApplicationPart, context: EmbeddedContext, mainScript: string): PartDefinition {
  return {
    name: part.name,
    command: process.execPath,
    args: [...NODE_FLAGS, mainScript, ...part.args],
    env: {
      ...PROCESS_ENVIRONMENT,
      ...process.env,
      ...(part.echo === true && isTerminal() ? { FORCE_COLOR: '1' } : {}),
      ...context.environment,
      ...part.environment,
    },
    logFile: join(context.dataDir, 'logs', `${part.name}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: part.stopGraceMs ?? 15_000,
    isReady: part.isReady,
    ...(part.echo === true ? { onLine: (line: string) => process.stdout.write(`${line}\n`) } : {}),
  };
}

function describe(
  { ports, infrastructure, portalUsers, environment }: EmbeddedContext,
  certificate: LocalCertificate,
  tenants: readonly EmbeddedTenant[],
): EmbeddedDescription {
  const { apiUrl, httpsUrl, sandboxUrl, receiverUrl } = embeddedUrls(ports);
  const { temporalAddress, temporalUiUrl, postgresUrl, minioUrl, minioCredentials } = infrastructure;
  return {
    apiUrl,
    publicUrl: environment.HELIOGRAPH_PUBLIC_URL ?? apiUrl,
    httpsUrl,
    caPath: certificate.caPath,
    ingressUrl: apiUrl,
    temporalAddress,
    temporalUiUrl,
    postgresUrl,
    minioUrl,
    minioAccessKey: minioCredentials.accessKey,
    minioSecretKey: minioCredentials.secretKey,
    sandboxUrl,
    receiverUrl,
    upstream: { appSecret: DEVELOPMENT_APP_SECRET, verifyToken: DEVELOPMENT_VERIFY_TOKEN },
    tenants,
    portalUrl: `${apiUrl}/portal`,
    portalUsers,
    pids: {},
  };
}

/** Writes embedded.json once everything is ready, and again whenever a process is replaced. */
function publish(session: Session, pids: Readonly<Record<string, number>> = allPids(session)): void {
  if (session.description === undefined) return;
  try {
    writeDescription(session.dataDir, { ...session.description, pids });
  } catch (error) {
    log(`could not write ${descriptionFile(session.dataDir)}: ${(error as Error).message}`);
  }
}

function allPids({ supervisor, parts }: Session): Record<string, number> {
  const pids = supervisor.pids();
  const aliased = parts.flatMap(({ name, aliases = [] }) => {
    const pid = pids[name];
    return pid === undefined ? [] : aliases.map((alias) => [alias, pid] as const);
  });
  return { supervisor: process.pid, ...pids, ...Object.fromEntries(aliased) };
}

function isTerminal(): boolean {
  return process.stdout.isTTY === true && process.env.NO_COLOR === undefined;
}

function log(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** npm passes a terminal's Ctrl-C on, so that one key press arrives twice. */
const SAME_KEY_PRESS_MS = 500;

const PARENT_CHECK_INTERVAL_MS = 500;

/**
 * Calls back at the first signal to stop and at the next one; returns the function that ends this.
 * The end of the shell in which npm runs a script counts as a signal: npm passes SIGTERM to that shell, which
 * dies of it without telling us.
 */
export function onStopSignals(handlers: { onFirst: () => void; onSecond: () => void }): () => void {
  let firstAt: number | undefined;
  const listener = (): void => {
    if (firstAt === undefined) {
      firstAt = performance.now();
      handlers.onFirst();
    } else if (performance.now() - firstAt > SAME_KEY_PRESS_MS) {
      handlers.onSecond();
    }
  };
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (isNpmScript() && process.ppid !== parent && firstAt === undefined) listener();
  }, PARENT_CHECK_INTERVAL_MS);
  watch.unref();
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, listener);
  return () => {
    clearInterval(watch);
    for (const signal of signals) process.off(signal, listener);
  };
}

function isNpmScript(): boolean {
  return process.env.npm_lifecycle_event !== undefined;
}

export interface BannerData {
  readonly description: EmbeddedDescription;
  readonly minioConsoleUrl: string;
  readonly minioCredentials: MinioCredentials;
  readonly descriptionFile: string;
  readonly logDirectory: string;
  readonly startSeconds: number;
  readonly missing: ReadonlySet<LateServer>;
}

/** What a newcomer needs once everything runs; coloured only when asked. */
export function readyBanner(data: BannerData, colored: boolean): string {
  const colors = pc.createColors(colored);
  const { bold, dim, green } = colors;
  const { description } = data;
  const tenant = description.tenants[0];
  const rows = addressRows(data, colors);
  if (tenant !== undefined)
    rows.push(['Demo API key', `${bold(tenant.apiKey)} ${dim(`(${tenant.businessName})`)}`]);
  rows.push(['All of it', data.descriptionFile], ['Logs', data.logDirectory]);
  const width = Math.max(...rows.map(([label]) => label.length));
  const steps = ['npm run sandbox -- message "hello"', 'npm run sandbox -- image'];
  if (tenant !== undefined) {
    steps.push(`curl -H 'Authorization: Bearer ${tenant.apiKey}' ${description.apiUrl}/me`);
  }
  return [
    '',
    `${green(bold('Heliograph is ready'))} ${dim(`after ${data.startSeconds.toFixed(1)} s`)}`,
    '',
    ...rows.map(([label, value]) => `  ${label.padEnd(width)}  ${value}`),
    '',
    '  Send a first message in the sandbox console, or in another terminal:',
    ...steps.map((step) => `    ${step}`),
    '',
    `  ${dim('Ctrl-C stops everything; the data stay. npm start -- --fresh starts empty.')}`,
    ...missingLine(data.missing),
    '',
    '',
  ].join('\n');
}

function addressRows(
  data: BannerData,
  { bold, cyan, dim }: ReturnType<typeof pc.createColors>,
): [string, string][] {
  const { description, minioCredentials, missing } = data;
  const fetched = dim('is being fetched; a line says when it is ready');
  const login = `${dim(`user ${minioCredentials.accessKey}, password`)} ${minioCredentials.secretKey}`;
  return [
    [
      'Sandbox console',
      `${bold(cyan(`${description.portalUrl}/sandbox`))} ${dim('begin here: play a customer')}`,
    ],
    ['Portal', cyan(description.portalUrl)],
    ...description.portalUsers.map(({ role, email, password }): [string, string] => [
      `  as ${role}`,
      `${bold(email)} ${dim('password')} ${bold(password)}`,
    ]),
    ['API', cyan(description.apiUrl)],
    ['Documentation', cyan(`${description.apiUrl}/docs`)],
    ['API over https', `${cyan(description.httpsUrl)} ${dim(`(trust ${description.caPath})`)}`],
    ['Webhook ingress', cyan(`${description.ingressUrl}/upstream/webhook`)],
    ['Temporal UI', missing.has('Temporal') ? fetched : cyan(description.temporalUiUrl)],
    ['MinIO console', missing.has('MinIO') ? fetched : `${cyan(data.minioConsoleUrl)} ${login}`],
    ['Sample tenant', `${cyan(description.receiverUrl)} ${dim('prints below what it receives')}`],
  ];
}

function missingLine(missing: ReadonlySet<LateServer>): string[] {
  if (missing.size === 0) return [];
  const join = missing.size > 1 ? 'join' : 'joins';
  const waits = missing.has('Temporal') ? 'replies, media and e-mails wait' : 'media waits';
  return [`  Webhooks work now. Until ${[...missing].join(' and ')} ${join}, ${waits}; nothing is lost.`];
}
