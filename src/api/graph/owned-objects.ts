import { isMembers, listOf, membersOf, textOf } from '../../platform/json/json-members.ts';
import type { OwnObject } from './allowed-calls.ts';

/** Asks upstream for a page of the objects of a WABA; the answer as text. */
type ListPage = (edge: string, query: URLSearchParams) => Promise<string>;

type Known = { ids: Set<string>; readAtMs: number };

const EDGES = { template: 'message_templates', flow: 'flows' } as const;
const MAX_PAGES = 20;
const PAGE_SIZE = '500';
/** An id that is not known makes us ask upstream again, but not more often than this. */
const ASK_EVERY_MS = 15_000;
/** What was deleted upstream is refused by upstream itself. */
const KNOWN_FOR_MS = 600_000;
const MAX_WABAS = 1_000;

export type OwnedObjects = ReturnType<typeof makeOwnedObjects>;

/**
 * Which templates and flows WABAs have, as upstream lists them: an id in a path says nothing of its owner, and one
 * access token may reach several WABAs.
 */
export function makeOwnedObjects(now: () => number = Date.now) {
  const known = new Map<string, Known>();
  const underWay = new Map<string, Promise<Known>>();
  const keep = (key: string, entry: Known): void => {
    const [oldest] = known.keys();
    if (known.size >= MAX_WABAS && oldest !== undefined) known.delete(oldest);
    known.set(key, entry);
  };
  /** Requests side by side share one look; what it finds is kept unless the WABA has made something since. */
  const readOnce = (key: string, edge: string, page: ListPage): Promise<Known> => {
    const present = underWay.get(key);
    if (present !== undefined) return present;
    const reading = listIds(edge, page).then((ids) => ({ ids, readAtMs: now() }));
    const end = (entry: Known | null) => {
      if (underWay.get(key) !== reading) return;
      underWay.delete(key);
      if (entry !== null) keep(key, entry);
    };
    underWay.set(key, reading);
    reading.then(end, () => end(null));
    return reading;
  };
  const has = async (wabaId: string, kind: keyof typeof EDGES, id: string, page: ListPage) => {
    const key = `${wabaId} ${kind}`;
    const present = known.get(key);
    const ageMs = now() - (present?.readAtMs ?? 0);
    const isFresh = present !== undefined && ageMs < (present.ids.has(id) ? KNOWN_FOR_MS : ASK_EVERY_MS);
    const { ids } = isFresh ? present : await readOnce(key, EDGES[kind], page);
    return ids.has(id);
  };
  return {
    async kindOf(wabaId: string, id: string, page: ListPage): Promise<OwnObject | null> {
      if (await has(wabaId, 'template', id, page)) return 'template';
      return (await has(wabaId, 'flow', id, page)) ? 'flow' : null;
    },
    /** Lets the next look ask upstream: the WABA has made something. */
    forget(wabaId: string): void {
      for (const key of Object.keys(EDGES).map((kind) => `${wabaId} ${kind}`)) {
        known.delete(key);
        underWay.delete(key);
      }
    },
  };
}

async function listIds(edge: string, page: ListPage): Promise<Set<string>> {
  const ids = new Set<string>();
  let after: string | null = null;
  for (let count = 0; count < MAX_PAGES; count += 1) {
    const query = new URLSearchParams({ fields: 'id', limit: PAGE_SIZE, ...(after !== null && { after }) });
    const answer: unknown = JSON.parse(await page(edge, query));
    if (!isMembers(answer)) break;
    for (const { id } of listOf(answer.data)) ids.add(textOf(id));
    const { next, cursors } = membersOf(answer.paging);
    after = next === undefined ? null : textOf(membersOf(cursors).after) || null;
    if (after === null) break;
  }
  return ids;
}
