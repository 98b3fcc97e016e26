import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import { newSecretToken } from '../../../platform/crypto/secret-box.ts';
import { countedAddress } from '../../../platform/http/counted-address.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { tooManyAttempts } from '../access/page-error.ts';
import { deviceCookie } from '../access/session-cookie.ts';

/** How often a visitor may try to sign in. */
export type SignInLimit = {
  /**
   * Counts an attempt against an account, whether it exists or not: an e-mail address, or a text that can be none for
   * what strangers must not count against. Throws PageError 429.
   */
  count(request: FastifyRequest, account: string): Promise<void>;
  /** Takes an attempt back that was right, and forgets those against the account; null: those stay. */
  succeeded(request: FastifyRequest, account: string | null): Promise<void>;
  /** As `count`, for codes of the second factor: whoever may try them has the password already. */
  countCode(request: FastifyRequest, user: CodeUser): Promise<void>;
  /** Forgets the codes that were counted. */
  codeSucceeded(request: FastifyRequest, user: CodeUser): Promise<void>;
  /** From now on attempts from elsewhere do not keep this browser out of the account. */
  knowBrowser(request: FastifyRequest, reply: FastifyReply, account: string): void;
};

type CodeUser = { userId: string; email: string };

const MINUTE_SECONDS = 60;

/** Wrong passwords for one account from one address; fewer from an address that tries many accounts. */
const PER_PAIR = { points: 10, duration: 15 * MINUTE_SECONDS };
const PER_PAIR_OF_GUESSER = { ...PER_PAIR, points: 3 };
const PER_ADDRESS = { points: 30, duration: 10 * MINUTE_SECONDS };

/** Of all addresses together: what many that are guessing at once may try. */
const PER_ACCOUNT = { points: 300, duration: 60 * MINUTE_SECONDS };

/** A browser that has signed in to the account before: attempts from elsewhere do not count against it. */
const PER_DEVICE = { points: 10, duration: 15 * MINUTE_SECONDS };

/** Of all such browsers together: who signs in again and again has as many of them as he likes. */
const PER_KNOWN = { points: 100, duration: 60 * MINUTE_SECONDS };

/** Wrong codes for one account from all addresses together; a browser that has signed in before has a count of its own. */
const PER_CODE_USER = { points: 10, duration: 15 * MINUTE_SECONDS };

/** Counts in the database, so that all processes count together and a restart forgives nothing. */
export function createSignInLimit(database: Database, devices: KnownDevices): SignInLimit {
  const open = (keyPrefix: string, rate: { points: number; duration: number }) =>
    new RateLimiterPostgres({ ...storedIn(database), ...rate, keyPrefix });
  const perAddress = open('sign-in-ip', PER_ADDRESS);
  const perPair = open('sign-in-pair', PER_PAIR);
  const perPairOfGuesser = open('sign-in-pair', PER_PAIR_OF_GUESSER);
  const perAccount = open('sign-in-account', PER_ACCOUNT);
  const perDevice = open('sign-in-device', PER_DEVICE);
  const perKnown = open('sign-in-known', PER_KNOWN);
  const perCodeUser = open('sign-in-code', PER_CODE_USER);
  const codeKeys = (request: FastifyRequest, { userId, email }: CodeUser) => {
    const account = accountKey(email);
    const device = devices.read(request, account);
    return { key: `${userId} ${device ?? ''}`, known: device === null ? null : account };
  };

  return {
    async count(request, email) {
      const account = accountKey(email);
      const device = devices.read(request, account);
      if (device !== null) {
        await consume(perDevice, device);
        await consume(perKnown, account);
        return;
      }
      const address = countedAddress(request.ip);
      const { consumedPoints } = await perAddress.penalty(address);
      const isGuesser = consumedPoints > PER_ADDRESS.points;
      await consume(isGuesser ? perPairOfGuesser : perPair, `${account} ${address}`);
      await consume(perAccount, account);
    },
    async succeeded(request, email) {
      const account = email === null ? null : accountKey(email);
      const device = account === null ? null : devices.read(request, account);
      if (account !== null && device !== null) {
        await perDevice.delete(device);
        await perKnown.reward(account);
        return;
      }
      const address = countedAddress(request.ip);
      await perAddress.reward(address);
      if (account === null) return;
      await perPair.delete(`${account} ${address}`);
      await perAccount.reward(account);
    },
    async countCode(request, user) {
      const { key, known } = codeKeys(request, user);
      await consume(perCodeUser, key);
      if (known !== null) await consume(perKnown, known);
    },
    async codeSucceeded(request, user) {
      const { key, known } = codeKeys(request, user);
      await perCodeUser.delete(key);
      if (known !== null) await perKnown.reward(known);
    },
    knowBrowser(request, reply, email) {
      const account = accountKey(email);
      devices.know(reply, account, devices.read(request, account));
    },
  };
}

function storedIn(database: Database) {
  return {
    storeClient: {
      query: ({ text, values }: { text: string; values: (string | number)[] }) => database.raw(text, values),
    },
    storeType: 'client',
    tableName: 'rate_limits',
    tableCreated: true,
    clearExpiredByTimeout: false,
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

/** Of one length, whatever was typed. */
function accountKey(account: string): string {
  return createHash('sha256').update(account.trim().toLowerCase()).digest('base64url');
}

/** Browsers that have signed in to an account. */
type KnownDevices = {
  /** The id of this browser if it has signed in to this account before. */
  read(request: FastifyRequest, account: string): string | null;
  /** Knows it from now on, by the id that it has or a new one. */
  know(reply: FastifyReply, account: string, id: string | null): void;
};

/** A random id in a cookie with its MAC, so nothing is stored. It opens nothing: it only tells whose attempts count. */
export function createKnownDevices(secrets: readonly Uint8Array[]): KnownDevices {
  const keys = secrets.map((secret) =>
    Buffer.from(hkdfSync('sha256', secret, '', 'heliograph portal device', 32)),
  );
  const macs = (id: string, account: string) =>
    keys.map((key) => createHmac('sha256', key).update(`${id} ${account}`).digest());
  return {
    read(request, account) {
      const [id = '', given = ''] = (deviceCookie.read(request) ?? '').split('.');
      const mac = Buffer.from(given, 'base64url');
      const isOurs = macs(id, account).some((one) => one.length === mac.length && timingSafeEqual(one, mac));
      return isOurs ? id : null;
    },
    know(reply, account, known) {
      const id = known ?? newSecretToken();
      const [mac] = macs(id, account);
      if (mac !== undefined) deviceCookie.set(reply, `${id}.${mac.toString('base64url')}`);
    },
  };
}
