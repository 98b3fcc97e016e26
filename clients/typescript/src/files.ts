/** What a file to upload can be. */
export type FileContent = Blob | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** What the service must know of a file besides its bytes. */
export type FileDescription = {
  /** MIME type, such as `image/jpeg`; taken from a `Blob` or `File` that has one. */
  mimeType?: string;
  /** Shown to who receives a document; taken from a `File`. */
  fileName?: string;
};

/** A file that comes: read `body`, or cancel it. */
export type Download = {
  body: ReadableStream<Uint8Array>;
  /** As the service found it in the bytes. */
  mimeType: string | null;
  /** Null when the service does not say it. */
  sizeBytes: number | null;
};

/** A form with one file, written while it is sent: the file is never in memory as a whole. */
export function formOf(content: FileContent, given: FileDescription) {
  const isBlob = content instanceof Blob;
  const mimeType = given.mimeType ?? (isBlob && content.type !== '' ? content.type : undefined);
  if (mimeType === undefined) throw new TypeError('mimeType is missing, and the file does not say it');
  const fileName = given.fileName ?? (content as Partial<File>).name ?? 'file';
  const boundary = `heliograph-${Array.from(crypto.getRandomValues(new Uint32Array(4))).join('-')}`;
  const head =
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${quoted(fileName)}"\r\n` +
    `Content-Type: ${mimeType.replaceAll(/[\r\n]/g, '')}\r\n\r\n`;
  return {
    body: streamOf(parts(head, content, `\r\n--${boundary}--\r\n`)),
    contentType: `multipart/form-data; boundary=${boundary}`,
  };
}

/** As browsers write the names of files in forms. */
function quoted(name: string): string {
  return name.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

async function* parts(head: string, content: FileContent, tail: string): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  yield encoder.encode(head);
  if (content instanceof Uint8Array) yield content;
  else yield* chunksOf(content instanceof Blob ? content.stream() : content);
  yield encoder.encode(tail);
}

async function* chunksOf(
  content: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  if (!('getReader' in content)) return yield* content;
  // Not every browser can iterate over a stream.
  const reader = content.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel();
  }
}

function streamOf(chunks: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
