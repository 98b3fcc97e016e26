// Run by the Dockerfile once workflow code is bundled: removes the packages that only bundling takes, and native code of
// other architectures, and writes down what is left as sbom.cdx.json (CycloneDX).
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** @temporalio/worker loads these when it starts, and calls them only to bundle. */
const BUNDLERS = ['webpack', 'swc-loader', '@swc/core', 'memfs', 'unionfs'].map(
  (name) => `node_modules/${name}`,
);
const RUST_ARCHITECTURES = { x64: 'x86_64', arm64: 'aarch64' };

const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));

/** Where Node.js finds `name` from `folder`. */
function resolve(folder, name) {
  for (let at = folder; ; at = at.slice(0, at.lastIndexOf('node_modules/')).replace(/\/$/, '')) {
    const path = join(at, 'node_modules', name);
    if (packages[path] !== undefined) return path;
    if (at === '') return null;
  }
}

function needed() {
  const found = new Set();
  const visit = (folder) => {
    const { dependencies, optionalDependencies, peerDependencies } = packages[folder];
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
      const path = resolve(folder, name);
      if (path === null || found.has(path) || BUNDLERS.includes(path)) continue;
      found.add(path);
      visit(path);
    }
  };
  visit('');
  return found;
}

const kept = needed();
for (const path of Object.keys(packages)) {
  if (path !== '' && !kept.has(path)) rmSync(path, { recursive: true, force: true });
}
for (const path of BUNDLERS) {
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'index.js'), 'module.exports = {};\n');
}
const releases = 'node_modules/@temporalio/core-bridge/releases';
for (const name of readdirSync(releases)) {
  if (name !== `${RUST_ARCHITECTURES[process.arch]}-unknown-linux-gnu`)
    rmSync(join(releases, name), { recursive: true });
}
rmSync('node_modules/@temporalio/core-bridge/sdk-core', { recursive: true }); // the sources of that code
if (readdirSync(releases).length !== 1) throw new Error(`no native code for ${process.arch}`);

// What only compilers and people read.
for (const name of readdirSync('node_modules', { recursive: true })) {
  if (/\.(d\.[cm]?ts|map|md|markdown|flow|tsbuildinfo)$/i.test(name))
    rmSync(join('node_modules', name), { recursive: true });
}

const components = [...kept]
  .filter((path) => existsSync(path))
  .map((path) => {
    const { version, license, integrity } = packages[path];
    const name = path.split('node_modules/').at(-1);
    const [algorithm, digest] = integrity.split('-');
    return {
      type: 'library',
      'bom-ref': path,
      name,
      version,
      purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
      hashes: [
        { alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(digest, 'base64').toString('hex') },
      ],
      ...(license && { licenses: [{ expression: license }] }),
    };
  });
components.push({
  type: 'platform',
  name: 'node',
  version: process.versions.node,
  purl: `pkg:generic/node@${process.versions.node}`,
});
const { name, version } = packages[''];
const sbom = {
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  version: 1,
  metadata: { component: { type: 'application', name, version } },
  components,
};
writeFileSync('sbom.cdx.json', JSON.stringify(sbom));
