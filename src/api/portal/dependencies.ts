import { setTimeout as sleep } from 'node:timers/promises';
import { requireUp } from '../../ops/health/questions.ts';
import type { PortalContext } from './portal-app.ts';

type Asked = Pick<PortalContext, 'config' | 'probeStore' | 'temporal'>;

export const ANSWER_WITHIN_MS = 2_000;

/** False also where nothing came within `withinMs`. */
export async function responds(ask: () => Promise<unknown>, withinMs: number): Promise<boolean> {
  const asked = ask().then(
    () => true,
    () => false,
  );
  return await Promise.race([asked, sleep(withinMs, false, { ref: false })]);
}

/** Of a page that many open, one visit in this time waits for a part that is silent. */
const KEEP_FOR_MS = 5_000;

/** Gives a sentence about Temporal and the object store while one of them is away, for pages that many open. */
export function makeAwaySentence(context: Asked & Pick<PortalContext, 'now'>): () => Promise<string | null> {
  let latest: { at: number; sentence: Promise<string | null> } | null = null;
  return async () => {
    const at = context.now();
    if (latest === null || at - latest.at >= KEEP_FOR_MS) latest = { at, sentence: awaySentence(context) };
    return await latest.sentence;
  };
}

async function awaySentence(context: Asked): Promise<string | null> {
  const [hasTemporal, hasStore] = await Promise.all([
    requireUp(['temporal'], context).then(
      () => true,
      () => false,
    ),
    responds(() => requireUp(['objectStore'], { objectStore: context.probeStore }), ANSWER_WITHIN_MS),
  ]);
  if (hasTemporal && hasStore) return null;
  if (hasTemporal)
    return 'The object store is away: files of messages wait until it is back, all else goes on.';
  const waits = 'messages that you send, files and replays wait until';
  return hasStore
    ? `Temporal is away: ${waits} it is back, webhooks go on.`
    : `Temporal and the object store are away: ${waits} they are back, webhooks go on.`;
}
