import { homedir, hostname, tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';

const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url)).replace(/\/$/, '');

/**
 * Takes out of a history (as JSON) what names the machine that recorded it; replaying compares none of it. Throws when
 * something of the machine, or a secret, is left: such a history must not be committed.
 */
export function scrubHistory(history: unknown): unknown {
  const scrubbed = scrub(history);
  const text = everythingIn(scrubbed).join('\n');
  const forbidden = [hostname(), homedir(), tmpdir(), REPOSITORY].filter((word) => word.length > 3);
  const found = [...forbidden, 'whsec_', 'EAAG', 'node_modules'].find((word) => text.includes(word));
  if (found !== undefined) throw new Error(`the history still holds ${found}`);
  return scrubbed;
}

/** Members that hold process, host or source locations. */
const REPLACED: Record<string, string> = { identity: 'worker', stackTrace: '' };

function scrub(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(scrub);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      typeof member === 'string' && name in REPLACED ? REPLACED[name] : scrub(member),
    ]),
  );
}

/** Every text in it, payloads decoded too. */
function everythingIn(value: unknown): string[] {
  if (typeof value === 'string') return [value, Buffer.from(value, 'base64').toString()];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(everythingIn);
}
