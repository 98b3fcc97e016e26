import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { RequestError } from '../../platform/request-input.ts';
import { requireNumber } from '../accounts/accounts.ts';
import type { CustomerReference } from './customer-reference.ts';
import { addOptOut, endOptOuts, listOptOuts, type NewOptOut, type OptOutRow } from './opt-outs.ts';
import { actualPerson, contactIdsOf, personOf } from './person.ts';

type Asking = { database: Database } & Audited;

const MOST_OF_A_CUSTOMER = 100;

/** Throws RequestError `unknown_phone_number`. */
export async function noteOptOut(
  { database, actor }: Asking,
  wabaId: string,
  customer: CustomerReference,
  given: Pick<NewOptOut, 'scope' | 'source'> & { phoneNumberId?: string; reason?: string },
): Promise<OptOutRow> {
  const { phoneNumberId = null, reason = null, scope, source } = given;
  if (phoneNumberId !== null) await requireNumber(database, wabaId, phoneNumberId);
  return await database.transaction(async (trx) => {
    const contactId = await contactOf(trx, wabaId, customer);
    const id = await addOptOut(trx, { wabaId, contactId, phoneNumberId, scope, source, reason });
    const detail = { scope, phoneNumberId };
    await recordChange(trx, actor, {
      wabaId,
      action: 'opt_out.noted',
      target: `customer ${contactId}`,
      detail,
    });
    const anything = { customer: null, phoneNumberId: null, source: null };
    const [row] = await listOptOuts(trx, wabaId, { ...anything, id }, { beforeId: null, limit: 1 });
    if (row === undefined) throw new Error('the opt-out is not there');
    return row;
  });
}

type Ending = Pick<NewOptOut, 'source'> & { phoneNumberId?: string | null; evidence: string };

/** Throws RequestError: `unknown_opt_out`, `opt_out_of_upstream`. */
export async function endCustomerOptOuts(
  { database, actor }: Asking,
  wabaId: string,
  customer: CustomerReference,
  { phoneNumberId = null, evidence, source }: Ending,
): Promise<{ ended: number; left: OptOutRow[] }> {
  return await database.transaction(async (trx) => {
    const of = { customer, phoneNumberId: null, source: null };
    const page = { beforeId: null, limit: MOST_OF_A_CUSTOMER };
    const before = await listOptOuts(trx, wabaId, of, page);
    if (before.length === 0) {
      throw new RequestError('unknown_opt_out', 'The customer has no opt-out.', 'customer');
    }
    const contactId = await contactOf(trx, wabaId, customer);
    const ended = await endOptOuts(trx, { wabaId, contactId, phoneNumberId, source });
    if (ended === 0) {
      const message = 'Upstream reported the opt-out: it ends when the customer resumes in WhatsApp.';
      throw new RequestError('opt_out_of_upstream', message, 'customer');
    }
    const detail = { evidence, phoneNumberId, ended };
    await recordChange(trx, actor, {
      wabaId,
      action: 'opt_out.ended',
      target: `customer ${contactId}`,
      detail,
    });
    return { ended, left: await listOptOuts(trx, wabaId, of, page) };
  });
}

async function contactOf(trx: Transaction, wabaId: string, customer: CustomerReference): Promise<string> {
  const person = await actualPerson(trx, wabaId, personOf(customer));
  const [contactId = ''] = await contactIdsOf(trx, [{ wabaId, ...person }]);
  return contactId;
}
