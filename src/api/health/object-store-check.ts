import { ObjectMissing, type ObjectStore } from '../../platform/object-store/object-store.ts';

const PROBE_KEY = 'readiness-probe';

/** Resolves when the object store answers and its bucket is there; the object asked for never is. */
export async function checkObjectStore(objectStore: ObjectStore): Promise<void> {
  await objectStore.ensureBucket();
  try {
    await objectStore.stat(PROBE_KEY);
  } catch (error) {
    if (!(error instanceof ObjectMissing)) throw error;
  }
}
