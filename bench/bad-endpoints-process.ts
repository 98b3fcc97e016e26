/** Tenants' servers that misbehave, each in its own way and always. A process of its own, driven by bench/main.ts. */

import { BAD_KINDS, startBadReceiver } from '../test/support/load/bad-receivers.ts';
import { answerParent } from './child-process.ts';

export type BadEndpointsProtocol = {
  /** Opens one server per way to misbehave; gives their URLs. */
  listen: { argument: null; result: string[] };
};

answerParent<BadEndpointsProtocol>({
  listen: async () => {
    const options = { dice: Math.random, goodShare: 0, maxBadPerWebhook: Number.POSITIVE_INFINITY };
    const receivers = await Promise.all(BAD_KINDS.map((kind) => startBadReceiver(kind, options)));
    return receivers.map(({ url }) => url);
  },
});
