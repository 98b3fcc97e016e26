import type { Output } from './output.ts';

/** Live events are about two seconds old. */
const LATE_MS = 30_000;
const TELL_EVERY_MS = 5_000;

/** Says from time to time how far events of the past have come, and when the last of them was forwarded. */
export function makeCatchUp({ note }: Pick<Output, 'note'>, nowMs: () => number) {
  let count = 0;
  let toldAtMs = 0;
  const end = (): void => {
    if (count > 0) note(`Caught up: ${count.toLocaleString('en')} earlier events were forwarded.`);
    count = 0;
  };
  return {
    forwarded(createdAt: string): void {
      const now = nowMs();
      const lateMs = now - Date.parse(createdAt);
      if (!(lateMs > LATE_MS)) {
        end();
        return;
      }
      if (count === 0) toldAtMs = now;
      count += 1;
      if (now - toldAtMs < TELL_EVERY_MS) return;
      toldAtMs = now;
      note(
        `Catching up: ${count.toLocaleString('en')} earlier events were forwarded, ${spanOf(lateMs)} to go.`,
      );
    },
    /** Nothing is waiting. */
    end,
  };
}

function spanOf(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 1) return 'less than a minute';
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
