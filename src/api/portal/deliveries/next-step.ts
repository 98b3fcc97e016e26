import type { DeliveryDetail } from '../../../deliveries/log/delivery-detail.ts';
import { relativeText, utcText } from '../components/time.ts';

const MODES = {
  paused: 'The endpoint is paused: it waits until somebody enables it.',
  disabled: 'The endpoint is switched off: it waits until somebody enables it.',
  probing: 'The endpoint mostly failed and is probed: it goes out when the endpoint is back.',
};

/** What becomes of a delivery, or became of it: the rest of the sentence that its state begins. */
export function nextStep(delivery: DeliveryDetail, now: Date): string {
  const { state, attempts, finishedAt, lastError } = delivery;
  const count = `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`;
  const at = finishedAt === null ? '' : `at ${utcText(finishedAt)}, `;
  switch (state) {
    case 'delivered':
      return `${at}after ${count}.`;
    case 'failed':
      return `for good ${at}after ${count}: ${lastError ?? 'no reason was noted'}. It is not tried again unless it is replayed.`;
    case 'dropped':
      return `${at}after ${count}: ${lastError ?? 'no reason was noted'}. It is not sent unless it is replayed.`;
    case 'pending':
      return `${waitingFor(delivery, now)}${asideText(delivery)}`;
  }
}

function asideText({ steppedAsideAt }: DeliveryDetail): string {
  if (steppedAsideAt === null) return '';
  return ` It stepped aside at ${utcText(steppedAsideAt)}: later events of its key no longer wait for it.`;
}

function waitingFor(
  { queueState, endpointMode, nextAttemptAt, attempts }: DeliveryDetail,
  now: Date,
): string {
  if (queueState === 'claimed') return 'An attempt is under way.';
  if (queueState === 'queued') return 'It waits behind an earlier event of its ordering key.';
  if (queueState === 'unreleased') return 'Its event is still being completed; it is sent once that is done.';
  if (queueState === 'suspended') return 'Its replay is paused: it waits until the replay is resumed.';
  if (endpointMode !== null && endpointMode !== 'open') return MODES[endpointMode];
  if (queueState === 'retrying' && nextAttemptAt !== null) {
    return `Attempt ${attempts + 1} follows ${relativeText(nextAttemptAt, now)}, at ${utcText(nextAttemptAt)}.`;
  }
  return 'It is sent as soon as a worker takes it.';
}
