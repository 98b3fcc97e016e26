import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { newSecretToken } from '../../../platform/crypto/secret-token.ts';
import { deviceCookie } from '../access/session-cookie.ts';

/** Browsers that have signed in to an account. */
export type KnownDevices = {
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
