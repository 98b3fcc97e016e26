import { findErasedKeys } from '../../features/messages/media/media.ts';
import {
  findNamedKeys,
  giveUpUpload,
  listReadyUploads,
  listStoredMedia,
  replaceLostMedia,
  type StoredFile,
} from '../../features/messages/restored.ts';
import type { ObjectStore, StoredObject } from '../../platform/object-store/object-store.ts';
import { ObjectMissing } from '../../platform/object-store/store-errors.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { Look, ReconcileTools, Tally } from './findings.ts';

const PAGE = 200;
const AT_ONCE = 16;
const FIRST_UUID = '00000000-0000-0000-0000-000000000000';

export const FILE_LOOKS: readonly Look[] = [
  {
    kind: 'media_without_object',
    what: 'received files that are not in the object store',
    remedy:
      'fetched again from upstream under the same address; what upstream no longer has ends as media_lost',
    run: lookAtMedia,
  },
  {
    kind: 'upload_without_object',
    what: 'uploaded files that are not in the object store',
    remedy: 'given up: the tenant is told to upload again',
    run: async (tools, tally) => {
      for await (const file of missingFiles(tools, listReadyUploads, FIRST_UUID)) {
        tally.found(file.id, tools.fix && (await giveUpUpload(tools.database, file)));
      }
    },
  },
  {
    kind: 'erased_object',
    what: 'objects of files that were erased',
    remedy: 'removed',
    run: async (tools, tally) => {
      for await (const objects of pagesOf(tools.objectStore.list())) {
        const keys = objects.map(({ key }) => key);
        for (const key of await findErasedKeys(tools.database, keys)) {
          if (tools.fix) await tools.objectStore.remove(key);
          tally.found(shownKey(key), tools.fix);
        }
      }
    },
  },
  {
    kind: 'object_without_row',
    what: 'objects that no row names',
    remedy: 'kept; --remove-objects <hours> with --fix removes those older than that',
    run: lookAtObjects,
  },
];

async function lookAtMedia(tools: ReconcileTools, tally: Tally): Promise<void> {
  let lost = 0;
  for await (const file of missingFiles(tools, listStoredMedia, '0')) {
    const outcome = tools.fix ? await replaceLostMedia(tools.database, file) : null;
    if (outcome === 'lost') lost += 1;
    tally.found(`message ${file.id}`, outcome !== null);
  }
  if (lost > 0) tally.note(`${lost} ended as media_lost, the others are fetched again from upstream`);
}

/** The store has no object, or one of another length. */
async function* missingFiles(
  { database, objectStore }: ReconcileTools,
  list: (database: Database, after: string, limit: number) => Promise<StoredFile[]>,
  first: string,
): AsyncGenerator<StoredFile> {
  for (let after: string | null = first; after !== null; ) {
    const page: StoredFile[] = await list(database, after, PAGE);
    for (let n = 0; n < page.length; n += AT_ONCE) {
      const group = page.slice(n, n + AT_ONCE);
      const isThere = await Promise.all(group.map((file) => hasObject(objectStore, file)));
      yield* group.filter((_, index) => !isThere[index]);
    }
    after = page.length < PAGE ? null : (page.at(-1)?.id ?? null);
  }
}

async function hasObject(objectStore: ObjectStore, { objectKey, sizeBytes }: StoredFile): Promise<boolean> {
  try {
    return (await objectStore.stat(objectKey)).sizeBytes === Number(sizeBytes);
  } catch (error) {
    if (error instanceof ObjectMissing) return false;
    throw error;
  }
}

/** Rows are written before objects, so an object without one belongs to a row that is gone. */
async function lookAtObjects(tools: ReconcileTools, tally: Tally): Promise<void> {
  const { database, objectStore, fix, removeObjectsAfterMs } = tools;
  for await (const objects of pagesOf(objectStore.list())) {
    const keys = objects.map(({ key }) => key);
    const known = await findNamedKeys(database, keys);
    for (const key of await findErasedKeys(database, keys)) known.add(key);
    for (const { key, modifiedAt } of objects.filter((object) => !known.has(object.key))) {
      const isOld = removeObjectsAfterMs !== null && Date.now() - modifiedAt.getTime() > removeObjectsAfterMs;
      if (fix && isOld) await objectStore.remove(key);
      tally.found(`${shownKey(key)} of ${modifiedAt.toISOString()}`, fix && isOld);
    }
  }
}

async function* pagesOf(objects: AsyncIterable<StoredObject>): AsyncGenerator<StoredObject[]> {
  let page: StoredObject[] = [];
  for await (const object of objects) {
    page.push(object);
    if (page.length < PAGE) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

/** Who knows the whole key may read the file. */
function shownKey(key: string): string {
  return `${key.slice(0, 12)}…`;
}
