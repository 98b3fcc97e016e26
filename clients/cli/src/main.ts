#!/usr/bin/env node
import { printable } from './output.ts';
import { run } from './run.ts';

// A reader that has seen enough, as of "| head", ends the command.
process.stdout.on('error', () => process.exit(0));
// A terminal that was closed.
process.stderr.on('error', () => {});

run(process.argv.slice(2), process).then(
  (exitCode) => {
    process.exitCode = exitCode;
    // Requests that nobody waits for any more must not keep the process; what is written must be.
    process.stdout.write('', () => process.exit(exitCode));
  },
  (error: unknown) => {
    process.stderr.write(
      `${printable(String(error instanceof Error ? error.stack : error))}\nThis is a mistake in heliograph-cli: please report it.\n`,
    );
    process.exit(1);
  },
);
