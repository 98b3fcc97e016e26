import { GraphError, isTokenError } from '../../platform/graph/graph-error.ts';
import { pickAccount } from './pick-account.ts';
import { registerOrSync } from './register-number.ts';
import type { Attention, SetupLink } from './setup-link-store.ts';
import { SetupProblem } from './setup-problem.ts';
import { AgainLater, accountOf, codeOf, type StepResult, type StepTools } from './step-kit.ts';

/** Does the next step of a link, which upstream may have done already. Throws SetupProblem, AgainLater or GraphError. */
export async function nextStep(tools: StepTools, link: SetupLink): Promise<StepResult> {
  if (link.state === 'authorized') {
    return link.tokenSealed === null ? await subscribe(tools, link) : await pickAccount(tools, link);
  }
  if (link.state === 'subscribed') return await registerOrSync(tools, link);
  return await check(tools, link);
}

/** Upstream takes a little time until it knows that an app is subscribed. */
const SUBSCRIBE_TRIES = 5;

/** First without an override: upstream refuses one for an app that is not subscribed. */
async function subscribe(tools: StepTools, link: SetupLink): Promise<StepResult> {
  const { graph, callback } = tools;
  const { wabaId, token } = await accountOf(tools, link);
  const apps = await graph.listSubscribedApps(wabaId, token);
  const isDone = apps.some(({ overrideCallbackUrl }) => overrideCallbackUrl === callback.callbackUrl);
  try {
    if (!isDone) {
      await graph.subscribeApp(wabaId, token, null);
      await graph.subscribeApp(wabaId, token, callback);
    }
  } catch (error) {
    if (!(error instanceof GraphError) || error.transient || isTokenError(error)) throw error;
    if (link.tries + 1 < SUBSCRIBE_TRIES)
      throw new AgainLater(`subscribe: upstream refuses (${codeOf(error)})`);
    const message = `Upstream does not send the webhooks of the WABA here: ${error.message}`;
    throw new SetupProblem('subscribe', 'subscription_failed', message, { upstreamCode: error.code });
  }
  return { change: { state: 'subscribed', tries: 0 } };
}

const CHECK_TRIES = 6;

async function check(tools: StepTools, link: SetupLink): Promise<StepResult> {
  const { wabaId, phoneNumberId, token } = await accountOf(tools, link);
  const { isInReview } = await tools.graph.readNumberSetup(phoneNumberId, token);
  const { problem, isSure, attention } = await tools.selfCheck(wabaId);
  if (problem !== null && (!isSure || link.tries + 1 < CHECK_TRIES)) {
    throw new AgainLater('check: webhooks would not arrive yet');
  }
  if (problem !== null) throw new SetupProblem('check', 'upstream_error', problem);
  const inReview: Attention[] = isInReview ? ['number_in_review'] : [];
  return { change: { state: 'done', tries: 0, attention: [...inReview, ...attention] } };
}
