import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { passContinue } from './status-lines.ts';

let isDone = false;

/**
 * Lets the HTTP clients of this process (undici's and Node's own `fetch`) read past a `100 Continue` that was not asked for, as
 * RFC 9110, 15.2 requires: undici ends the connection on it (nodejs/undici#197), and takes every other interim response as
 * it should. So a 100 reaches it as a 102. Holds for connections with one request at a time, which all of them are.
 */
export function readPastContinue(): void {
  if (isDone) return;
  isDone = true;
  subscribe('undici:client:sendHeaders', (message) => passContinue((message as { socket: Socket }).socket));
}
