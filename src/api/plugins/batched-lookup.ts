type Wanted<T> = PromiseWithResolvers<T | null>;

/**
 * Looks objects up by a secret that a client may have made up, each time afresh. Requests that come while look-ups are under
 * way share the next one, so that however many come, few statements are made and few connections taken. No look-up
 * begins before its request has come: what has ended meanwhile is not found.
 */
export function createBatchedLookup<T>(options: {
  find: (secrets: readonly string[]) => Promise<ReadonlyMap<string, T>>;
  /** More than one, if a connection that hangs must not hold up everything. */
  maxUnderWay: number;
}): (secret: string) => Promise<T | null> {
  let waiting = new Map<string, Wanted<T>>();
  let underWay = 0;

  const next = async (): Promise<void> => {
    if (underWay >= options.maxUnderWay || waiting.size === 0) return;
    const batch = waiting;
    waiting = new Map();
    underWay += 1;
    try {
      const found = await options.find([...batch.keys()]);
      for (const [secret, { resolve }] of batch) resolve(found.get(secret) ?? null);
    } catch (error) {
      for (const { reject } of batch.values()) reject(error);
    } finally {
      underWay -= 1;
      void next();
    }
  };

  return (secret) => {
    const known = waiting.get(secret);
    if (known !== undefined) return known.promise;
    const wanted = Promise.withResolvers<T | null>();
    waiting.set(secret, wanted);
    // Requests that were read together are looked up together.
    setImmediate(() => void next());
    return wanted.promise;
  };
}
