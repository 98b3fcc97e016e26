import type { Static, TObject } from 'typebox';
import type { Problem } from './problem.ts';

/** One kind of message that can be sent. */
export type MessageKind = {
  /** The member `type`, and the name of the member with the content. */
  type: string;
  /** Of an interactive message, its own `type`. */
  interactiveType?: string;
  content: TObject;
  /** What the schema cannot say; `path` is the content's. Only called for what follows the schema. */
  check?: (content: never, path: string) => Problem | null;
};

/** A kind whose check knows the content by its schema. */
export function messageKind<T extends TObject>(kind: {
  type: string;
  interactiveType?: string;
  content: T;
  check?: (content: Static<T>, path: string) => Problem | null;
}): MessageKind {
  return kind as unknown as MessageKind;
}
