import { type Audited, recordChange } from '../../../platform/audit/audit.ts';
import { PHONE_DIGITS } from '../../../platform/phone-number.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { RequestError } from '../../../platform/request-input.ts';
import type { Problem } from '../../../platform/schema/problems.ts';
import { findTemplate } from '../../accounts/templates.ts';
import { customerReferenceOf, NO_CUSTOMER } from '../../customers/customer-reference.ts';
import { otherNames } from '../../customers/phone-aliases.ts';
import { sendProblem } from '../send/check-send.ts';
import { templateProblem } from '../send/check-template.ts';
import { namedTemplate } from '../send/sent-template.ts';
import { messageTo } from './broadcast-message.ts';
import { insertRecipients, type NewRecipient, takenNames } from './broadcast-recipients.ts';
import { addToRecipients, type BroadcastIds, type BroadcastRow, lockBroadcast } from './broadcast-store.ts';
import type { GivenRecipient } from './recipient-file.ts';
import { alreadyStarted, broadcastName, unknownBroadcast } from './switch-broadcast.ts';

const MOST_RECIPIENTS = 100_000;

/** What became of one line of a request. */
type AddedLine = { result: 'added' | 'duplicate' } | { result: 'invalid'; param: string; message: string };

/** Throws RequestError: `unknown_broadcast`, `broadcast_started`, `broadcast_too_large`; then it adds none. */
export async function addRecipients(
  { database, actor }: { database: Database } & Audited,
  ids: BroadcastIds,
  given: readonly GivenRecipient[],
): Promise<AddedLine[]> {
  return await database.transaction(async (trx) => {
    const broadcast = await lockBroadcast(trx, ids);
    if (broadcast === null) throw unknownBroadcast(ids.broadcastId);
    if (broadcast.state !== 'draft') throw alreadyStarted();
    const check = await lineCheck(trx, broadcast);
    const lines = given.map((line, index) => check(line, `recipients/${index}`));
    const found = await newPeople(
      trx,
      ids,
      lines.filter((line) => 'recipient' in line),
    );
    const added = await insertRecipients(trx, ids, found);
    const total = await addToRecipients(trx, ids.broadcastId, added.size);
    if (total > MOST_RECIPIENTS) throw tooLarge();
    const detail = { added: added.size };
    const about = { wabaId: ids.wabaId, target: broadcastName(ids.broadcastId), detail };
    if (added.size > 0) await recordChange(trx, actor, { ...about, action: 'broadcast.recipients_added' });
    return lines.map((line) => {
      if (!('recipient' in line)) return { result: 'invalid', ...line };
      // Of several equal lines the first counts.
      return { result: added.delete(line.recipient) ? 'added' : 'duplicate' };
    });
  });
}

/** One line for each customer, however they are named, who is not a recipient yet. The caller has locked the broadcast. */
async function newPeople(
  trx: Transaction,
  ids: BroadcastIds,
  lines: readonly NewRecipient[],
): Promise<NewRecipient[]> {
  const names = [...new Set(lines.map(({ recipient }) => recipient))];
  const others = await otherNames(trx, ids.wabaId, names);
  const taken = await takenNames(trx, ids, [...others.values()].flat());
  return lines.filter(({ recipient }) => {
    const all = [recipient, ...(others.get(recipient) ?? [])];
    const isNew = !all.some((name) => taken.has(name));
    if (isNew) for (const name of all) taken.add(name);
    return isNew;
  });
}

function tooLarge(): RequestError {
  const most = MOST_RECIPIENTS.toLocaleString('en-US');
  return new RequestError(
    'broadcast_too_large',
    `A broadcast has at most ${most} recipients. None was added.`,
  );
}

/** The template is looked up once for all lines. */
async function lineCheck(database: Database, broadcast: BroadcastRow) {
  const { name, language } = namedTemplate(JSON.parse(broadcast.template));
  const template = await findTemplate(database, broadcast.wabaId, { name, language });
  return (line: GivenRecipient, path: string): NewRecipient | Problem => {
    const recipient = recipientOf(line.to);
    if (recipient === null) return { param: `${path}/to`, message: NO_CUSTOMER };
    const { ref = null, parameters = null } = line;
    const message = messageTo(broadcast, { recipient, parameters });
    const wrong =
      sendProblem(message) ?? (template === null ? null : templateProblem(template, message.template));
    if (wrong !== null) return { param: `${path}/parameters`, message: wrong.message };
    return { recipient, ref, parameters };
  };
}

/** Digits of a phone number that a message can be sent to, or a user id. */
function recipientOf(to: string): string | null {
  const reference = customerReferenceOf(to);
  if (reference === null) return null;
  if ('userId' in reference) return reference.userId;
  const { length } = reference.phone;
  return length >= PHONE_DIGITS.minimum && length <= PHONE_DIGITS.maximum ? reference.phone : null;
}
