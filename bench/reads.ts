import { onStopSignals } from '../dev/embedded/start.ts';
/** The benchmark of the API's reads: starts the stack, fills it, reads. Run: npm run bench:reads -- --help */

import { writeFile } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { apiKeyHints, hashApiKey, newApiKey } from '../src/features/keys/api-key.ts';
import { insertApiKey } from '../src/features/keys/api-key-store.ts';
import { startChild } from './child-process.ts';
import { fillMessages } from './reads/fill-messages.ts';
import { measureReads, type ReadFigures, readFiguresText } from './reads/measure-reads.ts';
import { READ_SCENARIOS } from './reads/read-scenarios.ts';
import { type WalkFigures, walkEverything } from './reads/walk-everything.ts';
import type { ReadsDriverProtocol } from './reads-driver-process.ts';
import { seedTargets } from './stack/seed.ts';
import { startStack } from './stack/stack.ts';

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', short: 'h', default: false },
    messages: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '30' },
    scenario: { type: 'string', default: [...READ_SCENARIOS.map(({ name }) => name), 'walk'].join(',') },
    json: { type: 'string' },
    profile: { type: 'string' },
  },
});

if (values.help) {
  process.stdout.write(
    [
      'npm run bench:reads -- [options]',
      '',
      '  --messages N      how many messages there are (1000000)',
      '  --seconds N       how long each scenario lasts (30)',
      '  --scenario NAMES  only these, separated by commas',
      '  --json FILE       also write the figures to a file',
      '  --profile DIR     API and worker write a CPU profile there when they end',
      '',
      ...READ_SCENARIOS.map(({ name, about }) => `  ${name.padEnd(18)} ${about}`),
      `  ${'walk'.padEnd(18)} every message is read once; the memory of the API meanwhile`,
      '',
    ].join('\n'),
  );
  process.exit(0);
}

const log = (line: string) => process.stderr.write(`${line}\n`);
const fail = (error: Error) => {
  log(error.message);
  process.exit(1);
};

// One key makes all requests here. The limiter counts them, but lets them through.
process.env.HELIOGRAPH_RATE_LIMIT_READS_PER_SECOND ??= '100000';

const stack = await startStack({
  log,
  processes: 'two',
  databaseDays: 90,
  checkout: null,
  profileDir: values.profile ?? null,
  onCrash: fail,
});
await stack.useProduct(
  { deliveryWorkflows: 'auto', workers: 1, coresPerWorker: null, tracesPercent: 0 },
  { fresh: true },
);
const driver = startChild<ReadsDriverProtocol>(new URL('./reads-driver-process.ts', import.meta.url), fail);
const release = onStopSignals({
  onFirst: () => void stack.stop().finally(() => process.exit(130)),
  onSecond: () => process.exit(130),
});
const figures: ReadFigures[] = [];
let walk: WalkFigures | null = null;
try {
  const [target] = await seedTargets(stack, 1, ['http://127.0.0.1:9/']);
  if (target === undefined) throw new Error('nothing was set up');
  const key = newApiKey();
  const { prefix, last4 } = apiKeyHints(key);
  const fields = { name: 'bench', keyHash: hashApiKey(key), prefix, lastFour: last4, expiresAt: null };
  await insertApiKey(stack.database, target.wabaId, fields);
  const authorization = `Bearer ${key}`;
  const messages = Number(values.messages);
  log(`filling in ${messages.toLocaleString('en-US')} messages`);
  const waba = await fillMessages(stack.database, target, messages, log);
  const wanted = values.scenario.split(',');
  for (const scenario of READ_SCENARIOS.filter(({ name }) => wanted.includes(name))) {
    log(`${scenario.name}: ${scenario.about}`);
    const bench = { stack, driver, waba, authorization, seconds: Number(values.seconds) };
    figures.push(await measureReads(bench, scenario));
  }
  if (wanted.includes('walk')) {
    log('walk: every message');
    walk = await walkEverything(
      { port: stack.apiPort, pid: stack.pids().api?.[0] ?? 0, authorization },
      messages,
    );
    if (walk.messages !== messages) throw new Error(`the walk met ${walk.messages} of ${messages} messages`);
  }
} finally {
  await driver.stop();
  await stack.stop();
  release();
}
process.stdout.write(`\n${readFiguresText(figures)}`);
if (walk !== null) {
  const { requests, seconds, rssMib, rssPeakMib } = walk;
  process.stdout.write(
    `walk: ${walk.messages} messages, ${requests} requests, ${seconds.toFixed(0)} s; API memory after each tenth ` +
      `${rssMib.join(' ')} MiB, at most ${rssPeakMib.toFixed(0)} MiB\n`,
  );
}
if (values.json !== undefined) {
  const machine = { cpus: availableParallelism(), model: cpus()[0]?.model ?? '', node: process.version };
  const json = {
    finishedAt: new Date().toISOString(),
    machine,
    messages: Number(values.messages),
    figures,
    walk,
  };
  await writeFile(values.json, `${JSON.stringify(json, null, 2)}\n`);
}
const missed = figures.filter(({ isMet, notOk }) => !isMet || notOk > 0);
for (const { scenario } of missed) log(`${scenario}: misses its target`);
process.exit(missed.length === 0 ? 0 : 1);
