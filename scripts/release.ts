/**
 * `npm run release -- 0.2.0`: gives everything that carries a version this one. `--check` and `--notes` only read, and so does
 * `--published`, which prints outputs for a workflow and reads the versions that have a tag, one in a line.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import {
  changelogSection,
  publishedAs,
  releasedChangelog,
  versionsIn,
  withVersion,
} from './release-versions.ts';

const [first = '', second] = process.argv.slice(2);
const version = second ?? first;
if (!/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version))
  fail('npm run release -- [--check|--notes|--published] <version>');

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
const write = (path: string, text: string) => writeFileSync(new URL(`../${path}`, import.meta.url), text);

if (first === '--notes') process.stdout.write(`${changelogSection(read('CHANGELOG.md'), version)}\n`);
else if (first === '--check') check();
else if (first === '--published') published();
else release();

function check(): void {
  const others = versionsIn(read).filter((found) => found.version !== version);
  if (others.length > 0)
    fail(others.map(({ path, version: found }) => `${path} has ${found}, not ${version}`).join('\n'));
  if (changelogSection(read('CHANGELOG.md'), version) === '')
    fail(`CHANGELOG.md has nothing about ${version}`);
}

function published(): void {
  const known = readFileSync(0, 'utf8')
    .split(/\s+/)
    .filter((text) => text !== '');
  const { imageTags, channel } = publishedAs(version, known);
  process.stdout.write(`channel=${channel}\nimage-tags=${imageTags.join(' ')}\n`);
}

function release(): void {
  for (const path of new Set(versionsIn(read).map((found) => found.path)))
    write(path, withVersion(path, read(path), version));
  const today = new Date().toISOString().slice(0, 10);
  write('CHANGELOG.md', releasedChangelog(read('CHANGELOG.md'), version, today));
  check();
  process.stdout.write(
    `Everything has version ${version}. Read CHANGELOG.md, then:\n` +
      `  git commit --all --message 'chore: release ${version}'\n` +
      `  git tag --sign v${version} --message ${version} && git tag --sign clients/go/v${version} --message ${version}\n`,
  );
}

function fail(text: string): never {
  process.stderr.write(`${text}\n`);
  process.exit(1);
}
