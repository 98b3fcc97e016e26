#!/usr/bin/env node
// The command line runs TypeScript directly, which takes Node.js 24: an older one hands over to the one in node_modules.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

// Assistants that were set up with the path of a clone start the MCP server here; it is a command of heliograph-cli.
const entry = new URL(
  process.argv[2] === 'mcp' ? '../clients/cli/src/main.ts' : '../src/main.ts',
  import.meta.url,
);
const main = fileURLToPath(entry);
const isNewEnough = Number(process.versions.node.split('.')[0]) >= 24;

if (isNewEnough) {
  process.argv[1] = main;
  await import(entry.href);
} else {
  const name = process.platform === 'win32' ? 'node.cmd' : 'node';
  const node = fileURLToPath(new URL(`../node_modules/.bin/${name}`, import.meta.url));
  const child = spawn(node, [main, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.once('error', () => {
    process.stderr.write('Node.js 24 is needed and was not found in node_modules; run npm ci first.\n');
    process.exitCode = 1;
  });
  child.once('exit', (code, signal) => {
    process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
  });
}
