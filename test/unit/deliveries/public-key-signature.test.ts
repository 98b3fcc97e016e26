import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import {
  newSigningKey,
  newWebhookSecret,
  publicKeyOf,
  signStandard,
} from '../../../src/engine/endpoint/webhook-signature.ts';
import { verifiesEd25519, verifiesWebhook } from '../../support/ed25519-reference.ts';

const ID = 'evt_1';
const BODY = '{"text":"grüße 👋"}';
const hex = (text: string) => Buffer.from(text, 'hex');

const signed = (secrets: readonly string[], timestampSeconds = Math.floor(Date.now() / 1_000)) => {
  const list = signStandard({ secrets, id: ID, timestampSeconds, body: Buffer.from(BODY) });
  return { id: ID, timestamp: timestampSeconds, list, body: BODY };
};

describe('the signature with a private key', () => {
  test('is checked here by an implementation that agrees with RFC 8032 §7.1', () => {
    const publicKey = hex('fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025');
    const signature = hex(
      '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
    );
    expect(verifiesEd25519(publicKey, hex('af82'), signature)).toBe(true);
    expect(verifiesEd25519(publicKey, hex('af83'), signature)).toBe(false);
  });

  test('verifies with the public key and with no other, over id, time and body', () => {
    const [key, other] = [newSigningKey(), newSigningKey()];
    const webhook = signed([newWebhookSecret(), key]);
    expect(publicKeyOf(key)).toMatch(/^whpk_[A-Za-z0-9+/]{43}=$/);
    expect(verifiesWebhook(publicKeyOf(key), webhook)).toBe(true);
    expect(verifiesWebhook(publicKeyOf(other), webhook)).toBe(false);
    for (const changed of [{ id: 'evt_2' }, { timestamp: webhook.timestamp + 1 }, { body: `${BODY} ` }]) {
      expect(verifiesWebhook(publicKeyOf(key), { ...webhook, ...changed })).toBe(false);
    }
  });

  test('stands behind that of the secret, which the official library still finds', () => {
    const secret = newWebhookSecret();
    const { list, timestamp } = signed([secret, newSigningKey()]);
    expect(list).toMatch(/^v1,\S+ v1a,\S+$/);
    const headers = {
      'webhook-id': ID,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': list,
    };
    expect(new Webhook(secret).verify(BODY, headers)).toEqual(JSON.parse(BODY));
  });

  test('is made with both keys during a rotation', () => {
    const [newest, old] = [newSigningKey(), newSigningKey()];
    const webhook = signed([newWebhookSecret(), newest, old]);
    for (const key of [newest, old]) expect(verifiesWebhook(publicKeyOf(key), webhook)).toBe(true);
  });

  test.each(['whsk_', 'whsk_c2hvcnQ=', newWebhookSecret()])('has no public key for %s', (text) => {
    expect(() => publicKeyOf(text)).toThrow(/wrong form/);
  });
});
