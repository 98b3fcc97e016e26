import type { RecentAttempts } from '../../../platform/postgres/worker-processes.ts';

const MINUTE_MS = 60_000;

export const LATELY_MINUTES = 15;

/** Counts the attempts of a process and those that a run of their delivery shows, on the clock `now` in ms. */
export class RunShare {
  readonly #now: () => number;
  readonly #total: RecentAttempts = { attempts: 0, withRun: 0 };
  /** The value of `#total` when each of the last minutes began, the oldest first. */
  #before: { minute: number; total: RecentAttempts }[] = [];

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  note(hasRun: boolean): void {
    this.#total.attempts += 1;
    if (hasRun) this.#total.withRun += 1;
  }

  total(): RecentAttempts {
    return { ...this.#total };
  }

  /** Of the last 15 minutes, if it is called at least once in each. */
  lately(): RecentAttempts {
    const minute = Math.floor(this.#now() / MINUTE_MS);
    if (this.#before.at(-1)?.minute !== minute) this.#before.push({ minute, total: this.total() });
    this.#before = this.#before.filter((one) => one.minute > minute - LATELY_MINUTES);
    const { attempts, withRun } = this.#before[0]?.total ?? this.#total;
    return { attempts: this.#total.attempts - attempts, withRun: this.#total.withRun - withRun };
  }
}
