import type { PassTools } from '../features/messages/send/send-pass.ts';
import { type SharedMoment, stepSharedMoment } from '../features/messages/send/shared-moment.ts';
import { inPasses } from './in-passes.ts';

export type SendScheduledActivities = ReturnType<typeof makeSendScheduledActivities>;

export function makeSendScheduledActivities(tools: PassTools) {
  return {
    /** Sends the messages of a moment until none is left. While it has to wait it fails, benignly, with the wait until it looks again. */
    sendMoment: async (moment: SharedMoment): Promise<string> => {
      let sent = 0;
      await inPasses(
        async (pass) => {
          const step = await stepSharedMoment(tools, moment, pass);
          sent += step.sent;
          return step;
        },
        () => `${sent} were begun in this attempt.`,
      );
      return 'None is left that has no workflow of its own.';
    },
  };
}
