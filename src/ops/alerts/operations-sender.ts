import { leaseClockMs, leaseMsFor } from '../../platform/lease-clock.ts';
import type { Logger } from '../../platform/logger.ts';
import { type Loop, startLoop, type WorkWatch } from '../../platform/loop.ts';
import { claimHooks, HAS_HOOK } from '../feed/hook-store.ts';
import { serveHook } from '../feed/serve-hook.ts';
import { HAS_NOTICE } from './alert-notices.ts';
import { type NoticeTools, startNotices } from './send-notices.ts';

export type HookTools = NoticeTools & {
  logger: Pick<Logger, 'warn' | 'error'>;
  standsAside?: () => boolean;
  workWatch?: WorkWatch;
};

/**
 * Sends operation events to the hooks of the operator's program, and alerts to the operations URLs of WABAs, with PostgreSQL
 * alone: each hook in one worker at a time, in the order of the feed. A receiver that hangs holds up no other.
 */
export function startHookSender(tools: HookTools): Loop {
  const underWay = new Map<Promise<void>, string | null>();
  const stopping = new AbortController();
  const add = (work: Promise<void>, about: { hook?: string; wabaId?: string }) => {
    const run = work
      .catch((error) =>
        tools.logger.warn({ err: error, ...about }, 'its lease must end before it is sent again'),
      )
      .finally(() => underWay.delete(run));
    underWay.set(run, about.wabaId ?? null);
  };
  const loop = startLoop({
    name: 'operations-hooks',
    logger: tools.logger as Logger,
    standsAside: tools.standsAside,
    work: { watch: tools.workWatch, hasWork: `${HAS_HOOK} or ${HAS_NOTICE}` },
    turn: async () => {
      const claimedAtMs = leaseClockMs();
      for (const hook of await claimHooks(tools.database, leaseMsFor(tools.timeoutMs)))
        add(serveHook({ ...tools, stopping: stopping.signal }, hook, claimedAtMs), { hook: hook.ref });
      const busy = [...underWay.values()].flatMap((wabaId) => wabaId ?? []);
      for (const { wabaId, sent } of await startNotices(tools, busy)) add(sent, { wabaId });
      return false;
    },
  });
  return {
    ...loop,
    stop: async () => {
      stopping.abort();
      await loop.stop();
      await Promise.all(underWay.keys());
    },
  };
}
