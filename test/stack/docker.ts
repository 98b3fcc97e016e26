import { spawn, spawnSync } from 'node:child_process';

export type Run = (program: string, args: readonly string[], input?: string) => Promise<string>;

/** Runs programs in a folder; rejects with what they said when they fail, else resolves with what they wrote. */
export function runIn(folder: string, environment: Record<string, string>): Run {
  return (program, args, input = '') =>
    new Promise((resolve, reject) => {
      const child = spawn(program, args, { cwd: folder, env: { ...process.env, ...environment } });
      let written = '';
      let said = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        written += text;
        said += text;
      });
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
      child.once('error', reject);
      child.once('close', (code) => {
        const lines = said.trim().split('\n').slice(-30).join('\n');
        if (code === 0) resolve(written);
        else reject(new Error(`${program} ${args.join(' ')} ended with ${code}:\n${lines}`));
      });
      child.stdin.on('error', () => undefined);
      child.stdin.end(input);
    });
}

/** Why the stack cannot be started here; null when it can. */
export function whyNot(): string | null {
  const engine = spawnSync('docker', ['info', '--format', '{{.ServerVersion}}'], { encoding: 'utf8' });
  if (engine.error !== undefined) return 'there is no docker command';
  if (engine.status !== 0) return `no Docker engine can be reached (${engine.stderr.trim()})`;
  const compose = spawnSync('docker', ['compose', 'version', '--short'], { encoding: 'utf8' });
  if (compose.status !== 0) return 'docker has no compose plugin';
  return null;
}

/** Ends all processes of a container as a crash would, so that its restart policy counts. */
export async function killContainer(run: Run, container: string): Promise<void> {
  const pid = Number(await run('docker', ['inspect', '--format', '{{.State.Pid}}', container]));
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // An engine on another machine, or without root: Docker takes a kill of its own for a wish to stop.
    await run('docker', ['kill', container]);
    await run('docker', ['start', container]);
  }
}
