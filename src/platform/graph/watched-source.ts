/** Bytes for the body of a request; what they fail for is not lost behind what the connection says of it. */
export function watched(source: AsyncIterable<Uint8Array>) {
  let failure: { error: unknown } | null = null;
  // Not `yield*`: that would hand the source what undici throws into the body when the connection breaks.
  async function* bytes(): AsyncGenerator<Uint8Array> {
    const chunks = source[Symbol.asyncIterator]();
    for (;;) {
      const { value, done } = await chunks.next().catch((error: unknown) => {
        failure = { error };
        throw error;
      });
      if (done) return;
      yield value;
    }
  }
  return {
    bytes: bytes(),
    /** Throws what the source threw, if it did. */
    throwFailure: (): void => {
      const failed = failure as { error: unknown } | null;
      if (failed !== null) throw failed.error;
    },
  };
}
