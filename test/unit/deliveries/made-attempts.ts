import { type MadeAttempt, newRecording } from '../../../src/engine/deliveries/attempt/made-attempt.ts';
import { uuidV7 } from '../../../src/platform/public-ids.ts';
import type { SendResult } from '../../../src/platform/sender/http-sender.ts';

/** A first attempt of the delivery `delivery-<n>` that got this answer. */
export function madeAttempt(result: SendResult, n = 0): MadeAttempt {
  return {
    deliveryId: `delivery-${n}`,
    deliveryDay: '2026-11-21',
    token: 'token',
    attempts: 0,
    probes: 0,
    eventUuid: uuidV7(Date.now()),
    eventType: 'message',
    eventId: `wamid.${n}`,
    replay: false,
    isProbe: false,
    hasRun: false,
    isCalm: false,
    workflowId: null,
    endpoint: {
      id: '1',
      wabaId: '9',
      tenantId: '3',
      url: 'https://receiver.example/',
      version: 1,
      timeoutMs: 1_000,
      retryScheduleMs: [],
      workflows: 'auto',
      alwaysWorkflowsFor: [],
      customHeaders: {},
      appSecret: null,
      secrets: [],
      signingKeys: [],
      terms: {},
    },
    sent: { startedAt: new Date(), result },
    recording: newRecording(),
  };
}
