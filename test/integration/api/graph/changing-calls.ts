import { ALLOWED_CALLS, type OwnObject } from '../../../../src/api/graph/allowed-calls.ts';

export type Change = { method: 'POST' | 'DELETE'; object: OwnObject; edge: string; isSending?: boolean };

/** Every change that the facade passes on, from its own list. */
export const CHANGES: readonly Change[] = Object.entries(ALLOWED_CALLS).flatMap(([object, edges]) =>
  Object.entries(edges).flatMap(([edge, { methods, isSending = false }]) =>
    methods
      .filter((method) => method !== 'GET')
      .map((method) => ({
        method,
        object: object as OwnObject,
        edge: edge.replace('*', 'ABC123'),
        isSending,
      })),
  ),
);
