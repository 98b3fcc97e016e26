import type { Transaction } from '../platform/postgres/database.ts';
import { execute } from '../platform/postgres/sql.ts';

/** A tenant with a WABA, a number and an endpoint, for a transaction that is rolled back. */
export type RehearsalAccounts = {
  /** Of the tenant as well; given, so that none is drawn. */
  endpointId: string;
  wabaId: string;
  phoneNumberId: string;
};

/** Statements of the rehearsal wait for no lock that somebody holds for long. */
const LOCK_TIMEOUT_MS = 200;
const STATEMENT_TIMEOUT_MS = 2_000;

/** Adds the accounts, and has the transaction wait for nothing for long. */
export async function insertRehearsalAccounts(
  trx: Transaction,
  {
    endpointId,
    wabaId,
    phoneNumberId,
    url,
    secretSealed,
  }: RehearsalAccounts & { url: string; secretSealed: string },
): Promise<void> {
  await trx.raw(
    `set local lock_timeout = ${LOCK_TIMEOUT_MS}; set local statement_timeout = ${STATEMENT_TIMEOUT_MS}`,
  );
  await execute(
    trx,
    `with tenant as (
       insert into tenants (id, business_name) overriding system value values (cast(:endpointId as bigint), 'rehearsal') returning id
     ), waba as (
       insert into wabas (waba_id, tenant_id) select cast(:wabaId as text), id from tenant returning waba_id
     ), number as (
       insert into phone_numbers (phone_number_id, waba_id, display_phone_number, verified_name)
       select cast(:phoneNumberId as text), waba_id, '', '' from waba
     )
     insert into webhook_endpoints (id, waba_id, url, secret_sealed)
     select cast(:endpointId as bigint), waba_id, cast(:url as text), cast(:secretSealed as text) from waba`,
    { endpointId, wabaId, phoneNumberId, url, secretSealed },
  );
}
