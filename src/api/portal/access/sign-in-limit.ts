import { createHash } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import type { Database } from '../../../database/database.ts';
import { tooManyAttempts } from './page-error.ts';

/** How often somebody may try to show who he is. */
export type SignInLimit = {
  /** Counts an attempt from this address, and against this account where one is named. Throws PageError 429. */
  count(ip: string, account: string | null): Promise<void>;
  /** Takes an attempt back that was right, and forgets those against the account. */
  succeeded(ip: string, account: string | null): Promise<void>;
};

const MINUTE_SECONDS = 60;
const PER_ADDRESS = { points: 30, duration: 10 * MINUTE_SECONDS };
const PER_ACCOUNT = { points: 10, duration: 15 * MINUTE_SECONDS };

/** Counts in the database, so that all processes count together and a restart forgives nothing. */
export function createSignInLimit(database: Database): SignInLimit {
  const shared = {
    storeClient: {
      query: ({ text, values }: { text: string; values: (string | number)[] }) => database.raw(text, values),
    },
    storeType: 'client',
    tableName: 'rate_limits',
    tableCreated: true,
    clearExpiredByTimeout: false,
  };
  const perAddress = new RateLimiterPostgres({ ...shared, ...PER_ADDRESS, keyPrefix: 'sign-in-ip' });
  const perAccount = new RateLimiterPostgres({ ...shared, ...PER_ACCOUNT, keyPrefix: 'sign-in-account' });
  return {
    async count(ip, account) {
      await consume(perAddress, networkOf(ip));
      // Whether the account exists makes no difference, or the limit would tell.
      if (account !== null) await consume(perAccount, accountKey(account));
    },
    async succeeded(ip, account) {
      await perAddress.reward(networkOf(ip));
      if (account !== null) await perAccount.delete(accountKey(account));
    },
  };
}

async function consume(limiter: RateLimiterPostgres, key: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (refusal) {
    if (refusal instanceof RateLimiterRes) throw tooManyAttempts(refusal.msBeforeNext);
    throw refusal;
  }
}

/** Whoever has one IPv6 address has 2^64 of them. */
function networkOf(ip: string): string {
  if (!ipaddr.isValid(ip)) return ip.slice(0, 100);
  const address = ipaddr.process(ip);
  if (address.kind() === 'ipv4') return address.toString();
  return `${address.toByteArray().slice(0, 8).join('.')}/64`;
}

/** Of one length, whatever was typed. */
function accountKey(account: string): string {
  return createHash('sha256').update(account.trim().toLowerCase()).digest('base64url');
}
