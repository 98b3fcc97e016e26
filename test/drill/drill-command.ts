import { writeFileSync } from 'node:fs';
import { onStopSignals } from '../../dev/embedded/start.ts';

/** A drill as a command. `readOptions` throws for wrong options, and returns null when the help was asked for. */
type DrillCommand<Options, Result> = {
  help: string;
  readOptions(): { options: Options; json: string | undefined } | null;
  run(
    options: Options,
    tools: { print: (line: string) => void; signal: AbortSignal },
  ): Promise<Result & { ok: boolean }>;
  reportOf(result: Result): string;
};

const print = (line: string) => void process.stdout.write(`${line}\n`);

/** Runs a drill and prints its report; the first stop signal ends it in order. Returns the exit code. */
export async function runDrillCommand<Options, Result>(
  command: DrillCommand<Options, Result>,
): Promise<number> {
  let parsed: ReturnType<typeof command.readOptions>;
  try {
    parsed = command.readOptions();
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${command.help}`);
    return 2;
  }
  if (parsed === null) {
    process.stdout.write(command.help);
    return 0;
  }
  const abort = new AbortController();
  const release = onStopSignals({
    onFirst: () => {
      print('stopping everything');
      abort.abort();
    },
    onSecond: () => process.exit(130),
  });
  try {
    const result = await command.run(parsed.options, { print, signal: abort.signal });
    process.stdout.write(command.reportOf(result));
    if (parsed.json !== undefined) writeFileSync(parsed.json, `${JSON.stringify(result, null, 2)}\n`);
    return result.ok ? 0 : 1;
  } catch (error) {
    if (abort.signal.aborted) return 130;
    process.stderr.write(`${(error as Error).stack}\n`);
    return 1;
  } finally {
    release();
  }
}
