// Run by `helm test` in a pod of the service's image; templates/tests/test.yaml sets the variables.
import { lookup } from 'node:dns/promises';

const { API, METRICS_HOST, METRICS_PORT, VERSION } = process.env;

const ask = (url) => fetch(url, { signal: AbortSignal.timeout(10_000) });

const readiness = await ask(`${API}/readyz`);
console.log(`${API}/readyz: ${readiness.status} ${await readiness.text()}`);
if (!readiness.ok) process.exit(1);

for (const { address, family } of await lookup(METRICS_HOST, { all: true })) {
  const host = family === 6 ? `[${address}]` : address;
  const metrics = await (await ask(`http://${host}:${METRICS_PORT}/metrics`)).text();
  const version = /^heliograph_build_info\{[^}]*version="([^"]+)"/m.exec(metrics)?.[1];
  console.log(`${address}: version ${version}`);
  if (VERSION !== '' && version !== VERSION) process.exit(1);
}
