import type { DeliveryDetail } from '../../../deliveries/log/delivery-detail.ts';
import { relativeText, utcText } from '../components/time.ts';

const MODES = {
  paused: 'It waits until the paused endpoint is enabled.',
  disabled: 'It waits until the disabled endpoint is enabled.',
  probing: 'It waits until the failing endpoint has recovered.',
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
      return `for good ${at}after ${count}: ${lastError ?? 'no reason recorded'}. No more attempts follow, unless you replay it.`;
    case 'dropped':
      return `${at}after ${count}: ${lastError ?? 'no reason recorded'}. It is not sent unless you replay it.`;
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
  if (queueState === 'claimed') return 'An attempt is in progress.';
  if (queueState === 'queued') return 'It waits for an earlier event of its ordering key.';
  if (queueState === 'unreleased') return 'Its order waits for catalog data; then it is sent.';
  if (queueState === 'suspended') return 'It waits until its paused replay is resumed.';
  if (endpointMode !== null && endpointMode !== 'open') return MODES[endpointMode];
  if (queueState === 'retrying' && nextAttemptAt !== null) {
    return `Attempt ${attempts + 1} follows ${relativeText(nextAttemptAt, now)}, at ${utcText(nextAttemptAt)}.`;
  }
  return 'It waits for a worker.';
}
