const CR = 0x0d;
const LF = 0x0a;
const ZERO = 0x30;
const ONE = 0x31;
const TWO = 0x32;
const STATUS_AT = 9;
const LINE = [...'HTTP/1.'].map((one) => one.charCodeAt(0));
const END = [CR, LF, CR, LF];

/** Where the bytes of a connection are: in a status line, in the rest of an interim response, or behind the final status. */
type Place = 'line' | 'interim' | 'final';

/**
 * Follows the responses of one connection as far as their status lines, over any cuts between packets, and writes 102 in
 * place of 100. A final status ends it until the next request: no byte of a body is ever looked at.
 */
class StatusLines {
  #place: Place = 'final';
  /** How many bytes of the status line, or of the end of an interim response, have been seen. */
  #seen = 0;
  #status = '';

  expectResponse(): void {
    this.#place = 'line';
    this.#seen = 0;
  }

  pass(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length && this.#place !== 'final'; at += 1) {
      const byte = chunk[at] ?? 0;
      if (this.#place === 'interim') this.#passInterim(byte);
      else if (this.#passLine(byte)) chunk[at] = TWO;
    }
  }

  /** Whether the byte is the last of a 100. */
  #passLine(byte: number): boolean {
    const at = this.#seen;
    if (at === 0 && (byte === CR || byte === LF)) return false;
    this.#seen += 1;
    if (at < STATUS_AT) {
      // The minor version and the space are the parser's to judge.
      if (at < LINE.length && byte !== LINE[at]) this.#place = 'final';
      return false;
    }
    if (at === STATUS_AT) this.#status = '';
    this.#status += String.fromCharCode(byte);
    if (at === STATUS_AT && byte !== ONE) this.#place = 'final';
    if (at < STATUS_AT + 2) return false;
    // 101 ends HTTP: what comes behind it is no response.
    this.#place = this.#status === '101' ? 'final' : 'interim';
    this.#seen = 0;
    return byte === ZERO && this.#status === '100';
  }

  #passInterim(byte: number): void {
    this.#seen = byte === END[this.#seen] ? this.#seen + 1 : byte === CR ? 1 : 0;
    if (this.#seen === END.length) this.expectResponse();
  }
}

/** A connection, as far as it matters here. */
type Readable = { read(sizeBytes?: number): unknown };

const known = new WeakMap<Readable, StatusLines>();

/**
 * Lets a response on this connection be read past a `100 Continue` that was not asked for. Must be called when the head of each
 * request is written. `npm run client` copies this file into the TypeScript client, so it uses nothing of Node.js.
 */
export function passContinue(socket: Readable): void {
  const lines = known.get(socket) ?? watch(socket);
  lines.expectResponse();
}

function watch(socket: Readable): StatusLines {
  const lines = new StatusLines();
  const read = socket.read.bind(socket);
  socket.read = (sizeBytes?: number): unknown => {
    const chunk = read(sizeBytes);
    if (chunk instanceof Uint8Array) lines.pass(chunk);
    return chunk;
  };
  known.set(socket, lines);
  return lines;
}
