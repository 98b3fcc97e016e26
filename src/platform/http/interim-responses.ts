import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

const CR = 0x0d;
const LF = 0x0a;
const ZERO = 0x30;
const ONE = 0x31;
const TWO = 0x32;
const STATUS_AT = 9;
const LINE = Buffer.from('HTTP/1.');
const END = Buffer.from('\r\n\r\n');

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

  pass(chunk: Buffer): void {
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

const known = new WeakMap<Socket, StatusLines>();

let isDone = false;

/**
 * Lets the HTTP clients of this process (undici's and Node's own `fetch`) read past a `100 Continue` that was not asked for, as
 * RFC 9110, 15.2 requires: undici ends the connection on it (nodejs/undici#197), and takes every other interim response as
 * it should. So a 100 reaches it as a 102. Holds for connections with one request at a time, which all of them are.
 */
export function readPastContinue(): void {
  if (isDone) return;
  isDone = true;
  subscribe('undici:client:sendHeaders', (message) => {
    const { socket } = message as { socket: Socket };
    const lines = known.get(socket) ?? watch(socket);
    lines.expectResponse();
  });
}

function watch(socket: Socket): StatusLines {
  const lines = new StatusLines();
  const read = socket.read.bind(socket);
  socket.read = (sizeBytes?: number): unknown => {
    const chunk: unknown = read(sizeBytes);
    if (Buffer.isBuffer(chunk)) lines.pass(chunk);
    return chunk;
  };
  known.set(socket, lines);
  return lines;
}
