import { ApplicationFailure } from '@temporalio/common';
import { lookAtTrouble, type ReportedFailure, type TroubleShown } from '../engine/deliveries/trouble/look.ts';
import { cancelDelivery } from '../features/delivery-log/shown-delivery.ts';
import { enableEndpoint, holdEndpoint } from '../features/endpoints/endpoint-modes.ts';
import { retryEndpoint } from '../features/endpoints/retry-now.ts';
import type { Database } from '../platform/postgres/database.ts';
import { RequestError } from '../platform/request-input.ts';
import { withHeartbeat } from '../platform/temporal/activity-kit.ts';

export type EndpointTroubleActivities = ReturnType<typeof makeEndpointTroubleActivities>;

/** What an operator asks of an endpoint in the Temporal UI: the buttons of its page in the portal. */
export type TroubleAction =
  | { do: 'retryNow' }
  | { do: 'pause'; reason: string }
  | { do: 'enable'; waiting: 'send' | 'drop' }
  | { do: 'skipHead'; deliveryId: string };

const ACTOR = { name: 'Temporal UI operator', requestId: null, ip: null };

export function makeEndpointTroubleActivities(tools: { database: Database; publicUrl: string }) {
  const audited = { database: tools.database, actor: ACTOR };
  const act = async (wabaId: string, id: string, action: TroubleAction): Promise<string> => {
    switch (action.do) {
      case 'retryNow': {
        const { retried, probed, more } = await retryEndpoint(audited, wabaId, id);
        return `${retried} retries are due now${probed ? ', and so is the probe' : ''}${more ? '; ask again for the rest' : ''}.`;
      }
      case 'pause':
        await holdEndpoint(audited, wabaId, { id, mode: 'paused', reason: action.reason });
        return 'The endpoint is paused.';
      case 'enable': {
        const { dropped } = await enableEndpoint(audited, wabaId, {
          id,
          waiting: action.waiting,
          by: ACTOR.name,
        });
        return `The endpoint is enabled; ${dropped} deliveries were dropped.`;
      }
      case 'skipHead':
        await cancelDelivery(audited, wabaId, action.deliveryId);
        return `Delivery ${action.deliveryId} is dropped.`;
    }
  };
  return {
    lookAtEndpoint: async (id: string, failure: ReportedFailure | null): Promise<TroubleShown | string> =>
      await lookAtTrouble(tools, id, failure),

    /** Does what an update asks for; a refusal fails with its text. */
    async actOnEndpoint(wabaId: string, id: string, action: TroubleAction): Promise<string> {
      try {
        return await withHeartbeat(() => act(wabaId, id, action));
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        throw ApplicationFailure.create({ message: error.message, type: error.code, nonRetryable: true });
      }
    },
  };
}
