import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import { hasEmail } from '../../../features/users/user-store.ts';
import { newSecretToken } from '../../../platform/crypto/secret-box.ts';
import { countedAddress, widerNetworks } from '../../../platform/http/counted-address.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { numberedClient } from '../../../platform/postgres/rate-limit-store.ts';
import { tooManyAttempts } from '../access/page-error.ts';
import { deviceCookie } from '../access/session-cookie.ts';

export type SignInLimit = {
  /** `account` is no e-mail address, so that strangers cannot count against it. Throws PageError 429. */
  count(request: FastifyRequest, account: string): Promise<void>;
  /** Takes an attempt back that was right, and forgets those against the account; null: those stay. */
  succeeded(request: FastifyRequest, account: string | null): Promise<void>;
  /** Counts an attempt against all accounts of an e-mail address, whether there are any or not. Throws PageError 429. */
  countSignIn(request: FastifyRequest, email: string): Promise<KnownBrowser>;
  /** As `succeeded`, for an attempt that opened the account of this user. */
  signedIn(request: FastifyRequest, userId: string, account: string | null): Promise<void>;
  /** As `count`, for codes of the second factor: a person who may try them has the password already. */
  countCode(request: FastifyRequest, user: CodeUser): Promise<void>;
  codeSucceeded(request: FastifyRequest, user: CodeUser): Promise<void>;
  /** From now on attempts from elsewhere do not keep this browser out of the account. */
  knowBrowser(request: FastifyRequest, reply: FastifyReply, userId: string): void;
};

/** Of a browser that has signed in before. `onlyUserId`: no other account of the address may be tried there. */
type KnownBrowser = { deviceId: string | null; onlyUserId: string | null };

type CodeUser = { userId: string };

const MINUTE_SECONDS = 60;

/** Wrong passwords for one account from one address; fewer from an address that tries many accounts. */
const PER_PAIR = { points: 10, duration: 15 * MINUTE_SECONDS };
const PER_PAIR_OF_GUESSER = { ...PER_PAIR, points: 3 };
const PER_ADDRESS = { points: 30, duration: 10 * MINUTE_SECONDS };

/** Wrong passwords from the networks of one customer together. They are counted first: who is refused leaves no further rows. */
const PER_56 = { points: 100, duration: 10 * MINUTE_SECONDS };
const PER_48 = { points: 300, duration: 10 * MINUTE_SECONDS };

/** Of all addresses together: what many that are guessing at once may try. */
const PER_ACCOUNT = { points: 300, duration: 60 * MINUTE_SECONDS };

/** A browser that has signed in to the account before: attempts from elsewhere do not count against it. */
const PER_DEVICE = { points: 10, duration: 15 * MINUTE_SECONDS };

/** Of all such browsers together: who signs in again and again has as many of them as he likes. */
const PER_KNOWN = { points: 100, duration: 60 * MINUTE_SECONDS };

/** Wrong codes for one account from all addresses together; a browser that has signed in before has its own count. */
const PER_CODE_USER = { points: 10, duration: 15 * MINUTE_SECONDS };

/** Counts in the database, so that all processes count together and a restart forgives nothing. */
export function createSignInLimit(database: Database, devices: KnownDevices): SignInLimit {
  const open = (keyPrefix: string, rate: { points: number; duration: number }) =>
    new RateLimiterPostgres({ ...storedIn(database), ...rate, keyPrefix });
  const strangers = createStrangerLimit(open);
  const perDevice = open('sign-in-device', PER_DEVICE);
  const perKnown = open('sign-in-known', PER_KNOWN);
  const perCodeUser = open('sign-in-code', PER_CODE_USER);
  const deviceOf = (request: FastifyRequest, userId: string) => {
    const device = devices.read(request);
    return device?.userId === userId ? device : null;
  };
  const codeKey = (request: FastifyRequest, userId: string) =>
    `${userId} ${deviceOf(request, userId)?.id ?? ''}`;

  return {
    async count(request, account) {
      const refusal = await strangers.count(request.ip, accountKey(account));
      if (refusal !== null) throw tooManyAttempts(refusal.msBeforeNext);
    },
    async succeeded(request, account) {
      await strangers.succeeded(request.ip, account === null ? null : accountKey(account));
    },
    async countSignIn(request, email) {
      const device = devices.read(request);
      const isKnown = device !== null && (await hasEmail(database, device.userId, email));
      if (isKnown) {
        await consume(perDevice, device.id);
        await consume(perKnown, device.userId);
      }
      const refusal = await strangers.count(request.ip, accountKey(email));
      if (isKnown) return { deviceId: device.id, onlyUserId: refusal === null ? null : device.userId };
      if (refusal !== null) throw tooManyAttempts(refusal.msBeforeNext);
      return { deviceId: null, onlyUserId: null };
    },
    async signedIn(request, userId, account) {
      const device = deviceOf(request, userId);
      if (device !== null) {
        await perDevice.delete(device.id);
        await perKnown.reward(userId);
      }
      await strangers.succeeded(request.ip, account === null ? null : accountKey(account));
    },
    async countCode(request, { userId }) {
      await consume(perCodeUser, codeKey(request, userId));
      if (deviceOf(request, userId) !== null) await consume(perKnown, userId);
    },
    async codeSucceeded(request, { userId }) {
      await perCodeUser.delete(codeKey(request, userId));
      if (deviceOf(request, userId) !== null) await perKnown.reward(userId);
    },
    knowBrowser(request, reply, userId) {
      devices.know(reply, { id: devices.read(request)?.id ?? newSecretToken(), userId });
    },
  };
}

/** Attempts in browsers that are not known, by network and account. `count` returns why an attempt is refused, or null. */
function createStrangerLimit(open: (prefix: string, rate: typeof PER_PAIR) => RateLimiterPostgres) {
  const [per56, per48] = [open('sign-in-ip56', PER_56), open('sign-in-ip48', PER_48)];
  const perAddress = open('sign-in-ip', PER_ADDRESS);
  const perPair = open('sign-in-pair', PER_PAIR);
  const perPairOfGuesser = open('sign-in-pair', PER_PAIR_OF_GUESSER);
  const perAccount = open('sign-in-account', PER_ACCOUNT);
  const wider = (ip: string) => {
    const networks = widerNetworks(ip);
    return networks === null
      ? []
      : ([
          [per48, networks.per48],
          [per56, networks.per56],
        ] as const);
  };
  return {
    async count(ip: string, account: string): Promise<RateLimiterRes | null> {
      for (const [limiter, network] of wider(ip)) {
        const refusal = await refusalOf(limiter, network);
        if (refusal !== null) return refusal;
      }
      const address = countedAddress(ip);
      const { consumedPoints } = await perAddress.penalty(address);
      const isGuesser = consumedPoints > PER_ADDRESS.points;
      const pair = isGuesser ? perPairOfGuesser : perPair;
      return (await refusalOf(pair, `${account} ${address}`)) ?? (await refusalOf(perAccount, account));
    },
    async succeeded(ip: string, account: string | null): Promise<void> {
      const address = countedAddress(ip);
      for (const [limiter, network] of wider(ip)) await limiter.reward(network);
      await perAddress.reward(address);
      if (account === null) return;
      await perPair.delete(`${account} ${address}`);
      await perAccount.reward(account);
    },
  };
}

function storedIn(database: Database) {
  return {
    storeClient: numberedClient(database),
    storeType: 'client',
    tableName: 'rate_limits',
    tableCreated: true,
    clearExpiredByTimeout: false,
  };
}

async function consume(limiter: RateLimiterPostgres, key: string): Promise<void> {
  const refusal = await refusalOf(limiter, key);
  if (refusal !== null) throw tooManyAttempts(refusal.msBeforeNext);
}

/** Counts one attempt; null: it is not one too many. */
async function refusalOf(limiter: RateLimiterPostgres, key: string): Promise<RateLimiterRes | null> {
  try {
    await limiter.consume(key);
    return null;
  } catch (refusal) {
    if (refusal instanceof RateLimiterRes) return refusal;
    throw refusal;
  }
}

/** Of one length, whatever was typed. */
function accountKey(account: string): string {
  return createHash('sha256').update(account.trim().toLowerCase()).digest('base64url');
}

type Device = { id: string; userId: string };

type KnownDevices = {
  read(request: FastifyRequest): Device | null;
  know(reply: FastifyReply, device: Device): void;
};

/**
 * A random id and the account in a cookie with their MAC, so nothing is stored. It opens nothing: it only tells whose
 * attempts count. It names the account and not its address, which several accounts may have.
 */
export function createKnownDevices(secrets: readonly Uint8Array[]): KnownDevices {
  const keys = secrets.map((secret) =>
    Buffer.from(hkdfSync('sha256', secret, '', 'heliograph portal device', 32)),
  );
  const macs = ({ id, userId }: Device) =>
    keys.map((key) => createHmac('sha256', key).update(`${id} user ${userId}`).digest());
  return {
    read(request) {
      const [id = '', userId = '', given = ''] = (deviceCookie.read(request) ?? '').split('.');
      const mac = Buffer.from(given, 'base64url');
      const device = { id, userId };
      const isOurs = macs(device).some((one) => one.length === mac.length && timingSafeEqual(one, mac));
      return isOurs ? device : null;
    },
    know(reply, device) {
      const [mac] = macs(device);
      if (mac !== undefined)
        deviceCookie.set(reply, `${device.id}.${device.userId}.${mac.toString('base64url')}`);
    },
  };
}
