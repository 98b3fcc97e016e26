type Place = { path: string; pattern: RegExp };

/** The packages as documents name them. */
const IN_DOCUMENTS =
  /((?:heliograph-(?:client|cli)-|clients\/go(?:\/|@| )v|the tag `v))(\d+\.\d+\.\d+(?:-\w+\.\d+)?)/;

/** Whatever carries the version of the service, once or several times. The first group of a pattern is what stands before it. */
const PLACES: readonly Place[] = [
  { path: 'package.json', pattern: /^( {2}"version": ")([^"]+)/m },
  // The first two of the file: its own, and that of the root package.
  { path: 'package-lock.json', pattern: /^(\{\n {2}"name": "heliograph",\n {2}"version": ")([^"]+)/ },
  {
    path: 'package-lock.json',
    pattern: /(\n {4}"": \{\n {6}"name": "heliograph",\n {6}"version": ")([^"]+)/,
  },
  { path: 'clients/typescript/package.json', pattern: /^( {2}"version": ")([^"]+)/m },
  { path: 'clients/python/pyproject.toml', pattern: /^(version = ")([^"]+)/m },
  { path: 'clients/go/client.go', pattern: /^(const Version = ")([^"]+)/m },
  { path: 'clients/cli/package.json', pattern: /^( {2}"version": ")([^"]+)/m },
  { path: 'charts/heliograph/Chart.yaml', pattern: /^(version: )(\S+)$/m },
  { path: 'charts/heliograph/Chart.yaml', pattern: /^(appVersion: )(\S+)$/m },
  { path: 'deploy/example.env', pattern: /(\bheliograph:)(\d+\.\d+\.\d+[\w.-]*)/ },
  ...['docker-compose.yml', 'docker-compose.small.yml', 'deploy/easypanel/meta.yaml'].map((path) => ({
    path,
    pattern: /(\bheliograph:)(\d+\.\d+\.\d+[\w.-]*)/,
  })),
  { path: 'README.md', pattern: /(\*\*Status: )(\d+\.\d+\.\d+[\w.-]*)/ },
  ...[
    'examples/receivers/go/go.mod',
    'clients/typescript/README.md',
    'clients/cli/README.md',
    'clients/go/README.md',
    'docs/tenants/cli.md',
    'docs/tenants/quick-start/typescript.md',
    'docs/tenants/quick-start/go.md',
  ].map((path) => ({ path, pattern: IN_DOCUMENTS })),
];

function everywhere(pattern: RegExp): RegExp {
  return new RegExp(pattern, `${pattern.flags}g`);
}

/** Each place with the versions that it has; throws where there is none. */
export function versionsIn(read: (path: string) => string): { path: string; version: string }[] {
  return PLACES.flatMap(({ path, pattern }) => {
    const versions = [...read(path).matchAll(everywhere(pattern))].map(([, , version]) => version ?? '');
    if (versions.length === 0) throw new Error(`${path} has no version where one was`);
    return versions.map((version) => ({ path, version }));
  });
}

/** A file with another version. */
export function withVersion(path: string, text: string, version: string): string {
  return PLACES.filter((place) => place.path === path).reduce(
    (changed, { pattern }) =>
      changed.replace(everywhere(pattern), (_all, before: string) => before + version),
    text,
  );
}

/** What CHANGELOG.md says of a version; empty where it says nothing. */
export function changelogSection(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m);
  const section = sections.find((text) => text.startsWith(`[${version}]`)) ?? '';
  return section.split('\n').slice(1).join('\n').trim();
}

/** What was unreleased becomes a version with its date. */
export function releasedChangelog(changelog: string, version: string, date: string): string {
  if (changelogSection(changelog, 'Unreleased') === '')
    throw new Error('CHANGELOG.md has nothing unreleased');
  return changelog.replace('## [Unreleased]\n', `## [Unreleased]\n\n## [${version}] - ${date}\n`);
}

/** Where a version is published. */
type Published = { imageTags: string[]; channel: string };

/**
 * The tags of a version's image and its channel at npm. A tag that spans several versions is that of the newest, so a fix of an
 * older minor version moves none backwards. `known` are the versions that have a tag in the repository.
 */
export function publishedAs(version: string, known: readonly string[]): Published {
  if (version.includes('-')) return { imageTags: [version, 'next'], channel: 'next' };
  const [major = '', minor = ''] = version.split('.');
  const isNewestOf = (prefix: string) =>
    known
      .filter((other) => /^\d+\.\d+\.\d+$/.test(other) && other.startsWith(prefix))
      .every((other) => compareVersions(other, version) <= 0);
  const imageTags = [version];
  if (isNewestOf(`${major}.${minor}.`)) imageTags.push(`${major}.${minor}`);
  // Before 1.0.0 a minor version may change anything.
  if (major !== '0' && isNewestOf(`${major}.`)) imageTags.push(major);
  if (!isNewestOf('')) return { imageTags, channel: `release-${major}.${minor}` };
  return { imageTags: [...imageTags, 'stable', 'latest'], channel: 'latest' };
}

function compareVersions(one: string, other: string): number {
  const [parts, others] = [one, other].map((text) => text.split('.').map(Number));
  const at = parts?.findIndex((part, index) => part !== others?.[index]) ?? -1;
  return at < 0 ? 0 : (parts?.[at] ?? 0) - (others?.[at] ?? 0);
}
