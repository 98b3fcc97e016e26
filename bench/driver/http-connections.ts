import { connect, type Socket } from 'node:net';
import { readHttpAnswer } from './http-answer.ts';

type Done = (status: number) => void;
type Connection = { socket: Socket; done: Done | null; text: string };

/** Ready-made requests over kept connections, one at a time on each. */
export type HttpConnections = {
  /** `request` is the whole request as bytes; `done` gets the status, 0 when the connection was lost. */
  send(request: Buffer, done: Done): void;
  close(): void;
};

/**
 * A client that does nothing but write bytes and find the end of answers: on two cores, what the driver takes is
 * missing where it is measured. Opens up to `max` connections, `initial` of them at once.
 */
export async function openHttpConnections(
  port: number,
  { initial, max, host = '127.0.0.1' }: { initial: number; max: number; host?: string },
): Promise<HttpConnections> {
  const all = new Set<Connection>();
  const idle: Connection[] = [];
  const waiting: { request: Buffer; done: Done }[] = [];

  const start = (connection: Connection, request: Buffer, done: Done) => {
    connection.done = done;
    connection.socket.write(request);
  };
  const release = (connection: Connection) => {
    const next = waiting.shift();
    if (next === undefined) idle.push(connection);
    else start(connection, next.request, next.done);
  };
  const open = (): Connection => {
    const connection: Connection = { socket: connect({ port, host }), done: null, text: '' };
    all.add(connection);
    connection.socket.setNoDelay(true);
    connection.socket.on('data', (chunk) => onData(connection, chunk, release));
    connection.socket.on('error', () => undefined);
    connection.socket.on('close', () => {
      all.delete(connection);
      const at = idle.indexOf(connection);
      if (at >= 0) idle.splice(at, 1);
      const { done } = connection;
      connection.done = null;
      done?.(0);
      const next = waiting.shift();
      if (next !== undefined) start(open(), next.request, next.done);
    });
    return connection;
  };
  const first = Array.from({ length: initial }, open);
  await Promise.all(first.map(({ socket }) => connectedOrClosed(socket)));
  idle.push(...first.filter((connection) => all.has(connection)));
  return {
    send: (request, done) => {
      const connection = popUsable(idle) ?? (all.size < max ? open() : undefined);
      if (connection === undefined) waiting.push({ request, done });
      else start(connection, request, done);
    },
    close: () => {
      waiting.length = 0;
      for (const { socket } of all) socket.destroy();
    },
  };
}

function connectedOrClosed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('connect', resolve).once('close', () => resolve()));
}

/** The connection used last: the others' end may be on its way. */
function popUsable(idle: Connection[]): Connection | undefined {
  for (;;) {
    const connection = idle.pop();
    if (connection === undefined || connection.socket.writable) return connection;
  }
}

function onData(connection: Connection, chunk: Buffer, release: (connection: Connection) => void): void {
  connection.text += chunk.toString('latin1');
  try {
    const answer = readHttpAnswer(connection.text);
    if (answer === null) return;
    connection.text = connection.text.slice(answer.endIndex);
    const { done } = connection;
    // Nothing was asked: the server says that it closes a connection which it found idle for too long.
    if (done === null) {
      connection.socket.destroy();
      return;
    }
    connection.done = null;
    release(connection);
    done(answer.status);
  } catch {
    connection.socket.destroy();
  }
}
