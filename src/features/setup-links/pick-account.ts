import { SYSTEM } from '../../platform/audit/audit.ts';
import { openOrNull } from '../../platform/crypto/secret-box.ts';
import type { UpstreamPhoneNumber } from '../../platform/graph/graph-calls.ts';
import { GraphError } from '../../platform/graph/graph-error.ts';
import { publicSetupId } from '../../platform/public-ids.ts';
import { RequestError } from '../../platform/request-input.ts';
import { findNumberOwners, wabaHolder } from '../accounts/number-owners.ts';
import { addWaba } from '../accounts/wabas.ts';
import { SETUP_TOKEN, type SetupChoice, type SetupLink } from './setup-link-store.ts';
import { SetupProblem } from './setup-problem.ts';
import type { StepResult, StepTools } from './step-kit.ts';

/** The WABA and the number, by what upstream says of the token; the customer is asked where there are several. The tenant has the WABA then. */
export async function pickAccount(tools: StepTools, link: SetupLink): Promise<StepResult> {
  const token = openToken(tools, link);
  const wabaIds = await permittedWabas(tools, link, token);
  const wabaId = await oneOf(tools, link, wabaIds);
  if (wabaId === null) return { change: { choice: await choiceOfWaba(tools, wabaIds, token) } };
  const holder = await wabaHolder(tools.database, wabaId);
  if (holder !== null && holder.tenantId !== link.tenantId) throw takenWaba();
  const numbers = await tools.graph.listPhoneNumbers(wabaId, token);
  const number = await pickNumber(tools, link, { numbers, token });
  if (number === null) return { change: { choice: choiceOfNumber(numbers), wabaId } };
  const { phoneNumberId } = number;
  return {
    before: async (trx) => {
      const actor = { ...SYSTEM, name: `set-up link ${publicSetupId(link.id)}` };
      const waba = { wabaId, phoneNumbers: [number], accessToken: token };
      await addWaba({ ...tools, database: trx, actor }, link.tenantId, waba).catch(asProblem);
    },
    change: { wabaId, phoneNumberId, tokenSealed: null, choice: null, tries: 0 },
  };
}

function openToken({ secretBox }: StepTools, { id, tokenSealed }: SetupLink): string {
  const token = openOrNull(secretBox, tokenSealed ?? '', SETUP_TOKEN.place(id));
  if (token !== null) return token;
  const message = 'What upstream gave cannot be decrypted any more. Begin again.';
  throw new SetupProblem('permissions', 'permission_missing', message, { isFromStart: true });
}

const NEEDED_SCOPES = ['whatsapp_business_management', 'whatsapp_business_messaging'];

/** For a link with steps, the WABA whose numbers upstream showed for the token. */
async function permittedWabas(tools: StepTools, link: SetupLink, token: string): Promise<string[]> {
  if (link.mode === 'steps') return link.wabaId === null ? [] : [link.wabaId];
  if (tools.signup === null) {
    const message = 'No app is configured any more. Begin again when one is.';
    throw new SetupProblem('permissions', 'upstream_error', message);
  }
  const { isOurs, scopes, wabaIds } = await tools.graph.readTokenRights(tools.signup, token);
  const missing = NEEDED_SCOPES.filter((scope) => !scopes.includes(scope));
  if (!isOurs || missing.length > 0) {
    const message = `Permissions are missing: ${(isOurs ? missing : NEEDED_SCOPES).join(', ')}.`;
    throw new SetupProblem('permissions', 'permission_missing', message, { isFromStart: true });
  }
  if (wabaIds.length > 0) return wabaIds;
  const message = 'No WhatsApp Business Account was chosen in the dialog.';
  throw new SetupProblem('waba', 'no_waba', message, { isFromStart: true });
}

/** The WABA that the customer chose, or has the number to be connected again, or is the only one; null: the customer is asked. */
async function oneOf(
  { database }: StepTools,
  { wabaId, reconnectPhoneNumberId }: SetupLink,
  wabaIds: readonly string[],
): Promise<string | null> {
  if (wabaId !== null && wabaIds.includes(wabaId)) return wabaId;
  const wanted = reconnectPhoneNumberId === null ? [] : [reconnectPhoneNumberId];
  const owner = [...(await findNumberOwners(database, wanted)).values()][0]?.wabaId;
  if (owner !== undefined && wabaIds.includes(owner)) return owner;
  const [first, ...more] = wabaIds;
  return first !== undefined && more.length === 0 ? first : null;
}

const MOST_LISTED = 20;

async function choiceOfWaba(
  { graph }: StepTools,
  wabaIds: readonly string[],
  token: string,
): Promise<SetupChoice> {
  const options = wabaIds.slice(0, MOST_LISTED).map(async (id) => {
    const name = await graph.readWabaName(id, token).catch((error: unknown) => {
      if (error instanceof GraphError) return '';
      throw error;
    });
    return { id, label: name === '' ? id : `${name} (${id})` };
  });
  return { of: 'waba', options: await Promise.all(options) };
}

function choiceOfNumber(numbers: readonly UpstreamPhoneNumber[]): SetupChoice {
  const options = numbers
    .slice(0, MOST_LISTED)
    .map(({ phoneNumberId, displayPhoneNumber, verifiedName }) => ({
      id: phoneNumberId,
      label: [displayPhoneNumber, verifiedName].filter((text) => text !== '').join(', ') || phoneNumberId,
    }));
  return { of: 'number', options };
}

/** The number that is wanted, or the only one, or the only one that is not registered; null: the customer is asked. */
async function pickNumber(
  { graph }: StepTools,
  { phoneNumberId, reconnectPhoneNumberId }: SetupLink,
  { numbers, token }: { numbers: readonly UpstreamPhoneNumber[]; token: string },
): Promise<UpstreamPhoneNumber | null> {
  const wanted = phoneNumberId ?? reconnectPhoneNumberId;
  const candidates = wanted === null ? numbers : numbers.filter((one) => one.phoneNumberId === wanted);
  const [first, ...more] = candidates;
  if (first === undefined) {
    const message =
      wanted === null
        ? 'The WhatsApp Business Account has no phone number: add one, then try again.'
        : `The WhatsApp Business Account does not have the number ${wanted}.`;
    throw new SetupProblem('number', 'no_number', message);
  }
  if (more.length === 0) return first;
  const states = await Promise.all(
    candidates.slice(0, MOST_LISTED).map(async (one) => ({
      one,
      ...(await graph.readNumberSetup(one.phoneNumberId, token)),
    })),
  );
  const [open, ...others] = states.filter(({ isRegistered, isInApp }) => !isRegistered && !isInApp);
  return open !== undefined && others.length === 0 ? open.one : null;
}

function takenWaba(): SetupProblem {
  const message = 'The WhatsApp Business Account is connected to another business here.';
  return new SetupProblem('waba', 'waba_taken', message, { isFromStart: true });
}

/** The tenant that has it is not named. */
function asProblem(error: unknown): never {
  const code = error instanceof RequestError ? error.code : null;
  if (code === 'waba_taken') throw takenWaba();
  if (code === 'phone_number_taken') {
    const message = 'The phone number is connected to another business here.';
    throw new SetupProblem('number', 'number_taken', message, { isFromStart: true });
  }
  throw error;
}
