import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { description } from './stack.ts';

const run = promisify(execFile);

/** The first tenant of the stack. */
export function tenant() {
  const [first] = description().tenants;
  if (first === undefined) throw new Error('the stack has no tenant');
  return first;
}

/** Text with examples replaced by what the stack has; each of them must be there. */
export function replaced(text: string, values: Readonly<Record<string, string>>): string {
  return Object.entries(values).reduce((result, [example, value]) => {
    if (!result.includes(example)) throw new Error(`the block has no ${example}: ${text}`);
    return result.replaceAll(example, value);
  }, text);
}

/** Runs commands of a block in a folder; anything but a success of a request fails the test. */
export async function runBlock(
  folder: string,
  commands: string,
  env: Record<string, string> = {},
): Promise<string> {
  const failing = commands.replaceAll('curl -s ', 'curl -sS --fail-with-body ');
  const { apiUrl } = description();
  const variables = { HELIOGRAPH_URL: apiUrl, HELIOGRAPH_API_KEY: tenant().apiKey, ...env };
  const options = { cwd: folder, env: { ...process.env, ...variables } };
  return (await run('sh', ['-euc', failing], options)).stdout;
}
