/**
 * Counts what tells whether the code is a house that a stranger can live in, and prints it beside its targets.
 * Run: npm run house, or npm run house -- [--static] [--files] [--check]. `--static` leaves out the walks, which need
 * the servers and a minute; `--files` lists the files of each figure; `--check` exits with 1 when a target is missed.
 */

import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import {
  featurePlaces,
  fullestFolder,
  lineCount,
  longestFile,
  longestFunction,
  readSources,
} from './house/count.ts';

/** What is not in the production image. */
const DEV = /^src\/dev\//;

const IMAGE_WORKFLOW = 'src/workflows/store-inbound-media.ts';

/** Pictures and sounds are no lines. */
const TEXT = /\.(?:ts|sql|css|js)$/;

/** A file outside of dev belongs to the feature whose stem stands first in its path. */
const FEATURES = {
  deliveries: /deliver(?:y|ies|-)/,
  endpoints: /send-endpoint-alert|endpoint/,
  media: /media/,
  sending: /\bsend\b|\bsending\b|outbound(?!-url)/,
  replays: /replay/,
  keys: /api-key|\bkeys?\b(?<!secret-keys)/,
  users: /\busers?\b|invitation|sign-in|password|oidc|membership/,
};

/** One setting of an endpoint in all its spellings. */
const ENDPOINT_SETTING = /block[-_]?limit[-_]?seconds/i;

type Figure = { name: string; value: number; most: number; detail: string; files?: readonly string[] };

const { values: options } = parseArgs({
  options: {
    static: { type: 'boolean', default: false },
    files: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
  },
});
process.chdir(new URL('..', import.meta.url).pathname);
const figures = [...staticFigures(), ...(options.static ? [] : await walkFigures())];
print(figures);
const missed = figures.filter(({ value, most }) => value > most);
process.exitCode = options.check && missed.length > 0 ? 1 : 0;

function staticFigures(): Figure[] {
  const tracked = execFileSync('git', ['ls-files', '-co', '--exclude-standard', 'src'], { encoding: 'utf8' });
  const deleted = execFileSync('git', ['ls-files', '-d', 'src'], { encoding: 'utf8' }).split('\n');
  const paths = tracked.split('\n').filter((path) => TEXT.test(path) && !deleted.includes(path));
  const sources = readSources(paths);
  const gateway = sources.filter(({ path }) => !DEV.test(path));
  const dev = sources.filter(({ path }) => DEV.test(path));
  const places = featurePlaces(gateway, FEATURES).sort(
    (one, other) => other.places.length - one.places.length,
  );
  const flat = fullestFolder(sources);
  const ofSetting = gateway.filter(({ text }) => ENDPOINT_SETTING.test(text)).map(({ path }) => path);
  const file = longestFile(sources.filter(({ path }) => path.endsWith('.ts')));
  const longest = longestFunction(sources);
  return [
    {
      name: 'lines of the gateway',
      value: lineCount(gateway),
      most: 42_000,
      detail: `${gateway.length} files`,
    },
    { name: 'lines of dev', value: lineCount(dev), most: 8_500, detail: `${dev.length} files` },
    { name: 'files in src', value: sources.length, most: 560, detail: '' },
    {
      name: 'folders per feature',
      value: places[0]?.places.length ?? 0,
      most: 4,
      detail: places.map(({ name, places: { length } }) => `${name} ${length}`).join(', '),
      files: places.map(({ name, places: found }) => `${name}: ${found.join(', ')}`),
    },
    { name: 'files flat in a folder', value: flat.value, most: 30, detail: flat.name },
    {
      name: 'files of an endpoint setting',
      value: ofSetting.length,
      most: 4,
      detail: 'blockLimitSeconds',
      files: ofSetting,
    },
    { name: 'lines of the longest module', value: file.value, most: 400, detail: file.name },
    { name: 'lines of the longest function', value: longest.value, most: 50, detail: longest.name },
  ];
}

async function walkFigures(): Promise<Figure[]> {
  const { measureWalks } = await import('./house/walks.ts');
  const { body, image, messages } = await measureWalks({ isDev: DEV, imageWorkflow: IMAGE_WORKFLOW });
  const figure = (name: string, files: readonly string[], most: number): Figure => {
    const detail = `${lineCount(readSources(files))} lines`;
    return { name, value: files.length, most, detail, files };
  };
  return [
    figure('files from body to endpoint', body, 40),
    figure('files from image to media.ready', image, 20),
    figure('files of GET messages', messages, 30),
  ];
}

function print(all: readonly Figure[]): void {
  const rows = all.map(({ name, value, most, detail }) => [
    name,
    value.toLocaleString('en'),
    `≤ ${most.toLocaleString('en')}`,
    value <= most ? 'met' : '',
    detail,
  ]);
  const table = [['', 'today', 'target', '', ''], ...rows];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  for (const row of table) {
    const cells = row.map((cell, column) => {
      const width = widths[column] ?? 0;
      return column === 1 || column === 2 ? cell.padStart(width) : cell.padEnd(width);
    });
    process.stdout.write(`${cells.join('  ').trimEnd()}\n`);
  }
  if (!options.files) return;
  for (const { name, files = [] } of all) {
    if (files.length > 0) process.stdout.write(`\n${name}\n${files.map((file) => `  ${file}\n`).join('')}`);
  }
}
