import { GraphError, isTokenError } from '../../platform/graph/graph-error.ts';
import { APP_SYNCS, isRefusal } from '../../platform/graph/graph-setup.ts';
import { numberPin, randomPin, saveNumberPin } from '../accounts/number-pins.ts';
import type { SetupLink } from './setup-link-store.ts';
import { SetupProblem } from './setup-problem.ts';
import { MOST_PINS } from './setup-visit.ts';
import { type Account, accountOf, type StepResult, type StepTools } from './step-kit.ts';

/** Registers the number, unless it is; one that stays in the WhatsApp Business app is not, and upstream copies what that app has. */
export async function registerOrSync(tools: StepTools, link: SetupLink): Promise<StepResult> {
  const account = await accountOf(tools, link);
  const number = await tools.graph.readNumberSetup(account.phoneNumberId, account.token);
  if (number.isInApp) await syncApp(tools, link, account);
  else if (!number.isRegistered) await register(tools, link, account);
  return { change: { state: 'registered', tries: 0, pinTries: 0 } };
}

const REGISTER_HOURS = 72;
const GUESS_HOURS = 1;
const HOUR_MS = 3_600_000;

/** The PIN is stored before upstream gets it. */
async function register(tools: StepTools, link: SetupLink, { phoneNumberId, token }: Account): Promise<void> {
  const known = await numberPin(tools, phoneNumberId);
  const pin = known ?? randomPin();
  if (known === null) await saveNumberPin(tools, phoneNumberId, pin);
  try {
    await tools.graph.registerNumber(phoneNumberId, token, pin);
  } catch (error) {
    if (!(error instanceof GraphError) || isTokenError(error)) throw error;
    const { code: upstreamCode, httpStatus, retryAfterMs } = error;
    if (isRefusal('pin', error)) {
      await saveNumberPin(tools, phoneNumberId, null);
      const retryable = link.pinTries < MOST_PINS;
      const message = 'Two-step verification is on for the number: enter its PIN.';
      throw new SetupProblem('register', 'pin_required', message, { upstreamCode, retryable });
    }
    if (isRefusal('registrationRate', error) || httpStatus === 429) {
      const hours = upstreamCode === 133_016 ? REGISTER_HOURS : GUESS_HOURS;
      const retryAt = new Date(Date.now() + (retryAfterMs ?? hours * HOUR_MS)).toISOString();
      const message = 'Upstream has had too many registrations of the number and takes none for a while.';
      throw new SetupProblem('register', 'registration_rate_limited', message, { upstreamCode, retryAt });
    }
    if (error.transient) throw error;
    const message = `Upstream does not register the number: ${error.message}`;
    throw new SetupProblem('register', 'registration_refused', message, { upstreamCode });
  }
}

/** A number that stays in the WhatsApp Business app is not registered; upstream copies what the app has, each once. */
async function syncApp(tools: StepTools, link: SetupLink, account: Account): Promise<void> {
  if (!link.connections.includes('coexistence')) {
    const message =
      'The number is used in the WhatsApp Business app, and this link takes it away from there.';
    throw new SetupProblem('register', 'registration_refused', message, { retryable: false });
  }
  for (const sync of APP_SYNCS) {
    try {
      await tools.graph.syncBusinessApp(account.phoneNumberId, account.token, sync);
    } catch (error) {
      if (!(error instanceof GraphError) || error.transient || isTokenError(error)) throw error;
      // It was asked before a process died: upstream takes each only once.
      if (!isRefusal('syncRepeated', error)) throw syncProblem(error);
    }
  }
}

function syncProblem(error: GraphError): SetupProblem {
  const upstreamCode = error.code;
  if (!isRefusal('syncLate', error)) {
    const message = `Upstream copies nothing of the WhatsApp Business app: ${error.message}`;
    return new SetupProblem('register', 'upstream_error', message, { upstreamCode });
  }
  const message =
    'Upstream copies the WhatsApp Business app within a day only: disconnect the number there, and begin again.';
  return new SetupProblem('register', 'coexistence_sync_late', message, { upstreamCode, isFromStart: true });
}
