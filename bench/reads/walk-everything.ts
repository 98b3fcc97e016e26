import { readRssMib } from '../process-usage.ts';

export type WalkFigures = {
  messages: number;
  requests: number;
  seconds: number;
  /** Resident memory of the API in MiB after each tenth of the walk. */
  rssMib: number[];
  rssPeakMib: number;
};

const WALKERS = 8;
const TENTHS = 10;

type Page = { data: { id: string }[]; hasMore: boolean; nextCursor: string | null };

/** Reads every message of a WABA over the API, page by page, and watches the memory of the API meanwhile. */
export async function walkEverything(
  { port, pid, authorization }: { port: number; pid: number; authorization: string },
  expected: number,
): Promise<WalkFigures> {
  const startMs = performance.now();
  const figures: WalkFigures = { messages: 0, requests: 0, seconds: 0, rssMib: [], rssPeakMib: 0 };
  const page = async (path: string): Promise<Page> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization } });
    if (!response.ok) throw new Error(`${path} answered ${response.status}`);
    figures.requests += 1;
    return (await response.json()) as Page;
  };
  const watch = setInterval(() => {
    const now = readRssMib(pid);
    figures.rssPeakMib = Math.max(figures.rssPeakMib, now);
  }, 250);
  async function* pages(path: string): AsyncGenerator<Page> {
    for (let next = path; ; ) {
      const found = await page(next);
      yield found;
      if (!found.hasMore) return;
      next = `${path}&cursor=${found.nextCursor}`;
    }
  }
  async function walkConversation(id: string): Promise<void> {
    for await (const { data } of pages(`/api/external/conversations/${id}/messages?limit=100&order=asc`)) {
      figures.messages += data.length;
      if (figures.messages >= (expected * (figures.rssMib.length + 1)) / TENTHS) {
        figures.rssMib.push(Math.round(readRssMib(pid)));
      }
    }
  }
  const underWay = new Set<Promise<void>>();
  for await (const { data } of pages('/api/external/conversations?limit=100')) {
    for (const { id } of data) {
      if (underWay.size >= WALKERS) await Promise.race(underWay);
      const walk: Promise<void> = walkConversation(id).finally(() => underWay.delete(walk));
      underWay.add(walk);
    }
  }
  await Promise.all(underWay);
  clearInterval(watch);
  figures.seconds = (performance.now() - startMs) / 1000;
  return figures;
}
