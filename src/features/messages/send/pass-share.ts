import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../../platform/postgres/database.ts';
import { findTemplate } from '../../accounts/templates.ts';
import { type NewlyAccepted, recordAllAccepted, untilRecorded } from './record-send.ts';

/** What the messages of a pass share, which lasts for seconds: what all of them read is read once, and what upstream accepted is recorded together. */
export type PassShare = {
  /** The pace of the number. */
  perSecond: number;
  token: (open: () => Promise<string>) => Promise<string>;
  findTemplate: typeof findTemplate;
  /** Returns when it is recorded. */
  accepted: (message: NewlyAccepted) => Promise<void>;
};

/** Other messages come along meanwhile: a pass sends some tens in a second. */
const RECORDED_AFTER_MS = 100;

export function makePassShare(database: Database, wabaId: string, perSecond: number): PassShare {
  const templates = new Map<string, ReturnType<typeof findTemplate>>();
  let token: Promise<string> | null = null;
  let waiting: NewlyAccepted[] = [];
  let recording: Promise<void> | null = null;
  const record = async () => {
    await sleep(RECORDED_AFTER_MS);
    const messages = waiting;
    waiting = [];
    recording = null;
    await untilRecorded(() => recordAllAccepted(database, wabaId, messages));
  };
  return {
    perSecond,
    token: async (open) => {
      token ??= open();
      return await token;
    },
    findTemplate: async (...asked) => {
      const key = JSON.stringify(asked.slice(1));
      const found = templates.get(key) ?? findTemplate(...asked);
      templates.set(key, found);
      return await found;
    },
    accepted: async (message) => {
      waiting.push(message);
      recording ??= record();
      await recording;
    },
  };
}
