import { createRequire } from 'node:module';
import type { HistoryAndWorkflowId } from '@temporalio/client';

type History = NonNullable<HistoryAndWorkflowId['history']>;

/** Generated code for Temporal's messages, as far as it is needed here. */
type HistoryMessage = {
  fromObject(json: object): History;
  toObject(
    history: History,
    options: { longs: typeof String; enums: typeof String; bytes: typeof String },
  ): object;
};
type TemporalMessages = { temporal: { api: { history: { v1: { History: HistoryMessage } } } } };

/** The copy that the SDK itself encodes with; its own JSON functions need one copy of protobufjs in the whole tree. */
const sdkRequire = createRequire(createRequire(import.meta.url).resolve('@temporalio/worker'));
const { History } = (sdkRequire('@temporalio/proto') as TemporalMessages).temporal.api.history.v1;

/** A history as JSON: names of enumerations, 64-bit numbers as text, bytes as base64. */
export function historyToJson(history: object): object {
  return History.toObject(History.fromObject(history), { longs: String, enums: String, bytes: String });
}

/** The opposite. */
export function historyFromJson(json: object): History {
  return History.fromObject(json);
}
