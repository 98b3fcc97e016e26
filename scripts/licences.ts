/** `npm run licences`: whether every package has a licence that is allowed. Reads the lock file; asks no registry. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Of what is shipped. They ask for attribution at most. */
const ALLOWED = new Set([
  ...['MIT', 'MIT-0', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', 'BlueOak-1.0.0'],
  ...['Unlicense', 'CC0-1.0', 'Zlib'],
]);

/** Of tools that are not shipped, these too. */
const ALLOWED_FOR_TOOLS = new Set([...ALLOWED, 'MPL-2.0', 'Python-2.0', 'CC-BY-4.0']);

/** Packages whose lock entry says nothing, or another word, and why they are taken all the same. */
const KNOWN: Readonly<Record<string, string>> = {
  // Its LICENSE file is the Unlicense; its package.json does not say so.
  unionfs: 'none',
  // Data about browsers, of which nothing is in the product's code; it comes with Temporal's bundler.
  'caniuse-lite': 'CC-BY-4.0',
};

type Locked = { license?: string; dev?: boolean; link?: boolean };

/** Packages of a lock file whose licence is not allowed: `name: licence`. */
export function refusedLicences(packages: Readonly<Record<string, Locked>>): string[] {
  return Object.entries(packages).flatMap(([path, { license = 'none', dev = false, link = false }]) => {
    const name = path.split('node_modules/').at(-1) ?? '';
    if (path === '' || link || KNOWN[name] === license) return [];
    return isAllowed(license, dev ? ALLOWED_FOR_TOOLS : ALLOWED) ? [] : [`${name}: ${license}`];
  });
}

/** An SPDX expression: of an OR one must be allowed, of an AND all. */
function isAllowed(expression: string, allowed: ReadonlySet<string>): boolean {
  const bare = expression.replace(/^\((.*)\)$/, '$1');
  if (bare.includes('(')) return false;
  return bare
    .split(' OR ')
    .some((either) => either.split(' AND ').every((licence) => allowed.has(licence.trim())));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const lock = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'));
  const refused = refusedLicences(lock.packages);
  for (const line of refused) process.stderr.write(`${line}\n`);
  process.stdout.write(`${Object.keys(lock.packages).length - 1} packages, ${refused.length} refused\n`);
  process.exitCode = refused.length === 0 ? 0 : 1;
}
