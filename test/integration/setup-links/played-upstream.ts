import type { SetupTools } from '../../../src/features/setup-links/set-up.ts';
import type { StepTools } from '../../../src/features/setup-links/step-kit.ts';
import { GraphError } from '../../../src/platform/graph/graph-error.ts';

export const APP = { appId: '700000000000001', configId: '700000000000002', appSecret: 'test-app-secret' };

type PlayedNumber = { isRegistered: boolean; isInApp: boolean; isInReview: boolean; pin: string | null };
type PlayedWaba = { numbers: Map<string, PlayedNumber>; isSubscribed: boolean; override: string | null };

type Calls = StepTools['graph'] & Awaited<ReturnType<SetupTools['client']>>;
export type CallName = keyof Calls;

export type PlayedUpstream = ReturnType<typeof playUpstream>;

export function refusedWith(code: number | null, more: Partial<GraphError> = {}): GraphError {
  const parts = { httpStatus: 400, subcode: null, message: `(#${code}) refused`, transient: false };
  return new GraphError({ ...parts, ...more, code });
}

const SCOPES = ['whatsapp_business_management', 'whatsapp_business_messaging'];
const CODE_LIVES_MS = 30_000;

/** What upstream does with the calls of a set-up: rules of its own, and failures that a test asks for. */
export function playUpstream() {
  const wabas = new Map<string, PlayedWaba>();
  const tokens = new Map<string, { wabaIds: string[]; scopes: string[] }>();
  const codes = new Map<string, { token: string; givenAtMs: number; isUsed: boolean }>();
  const failures = new Map<CallName, (GraphError | (() => Promise<void>))[]>();
  const seen: CallName[] = [];
  let nowMs = Date.now();
  let drawn = 0;

  function wabaFor(token: string, wabaId: string): PlayedWaba {
    const waba = wabas.get(wabaId);
    const isPermitted = tokens.get(token)?.wabaIds.includes(wabaId) === true;
    if (waba === undefined || !isPermitted) throw refusedWith(tokens.has(token) ? 100 : 190);
    return waba;
  }

  function numberFor(token: string, phoneNumberId: string): PlayedNumber {
    const found = [...wabas].find(([, { numbers }]) => numbers.has(phoneNumberId));
    const number = found === undefined ? undefined : wabaFor(token, found[0]).numbers.get(phoneNumberId);
    if (number === undefined) throw refusedWith(100);
    return number;
  }

  const calls: Calls = {
    exchangeCode: async (_app, code) => {
      const given = codes.get(code);
      if (given === undefined || given.isUsed) throw refusedWith(100, { subcode: 36_009 });
      if (nowMs - given.givenAtMs > CODE_LIVES_MS) throw refusedWith(100, { subcode: 36_007 });
      given.isUsed = true;
      return given.token;
    },
    readTokenRights: async (_app, token) => {
      const rights = tokens.get(token);
      return { isOurs: rights !== undefined, scopes: [], wabaIds: [], ...rights };
    },
    readWabaName: async (wabaId) => `Business ${wabaId}`,
    listPhoneNumbers: async (wabaId, token) =>
      [...wabaFor(token, wabaId).numbers].map(([phoneNumberId, { isInApp }]) => ({
        ...{ phoneNumberId, displayPhoneNumber: '+1 202-555-0100', verifiedName: 'Fixture Store' },
        ...{ qualityRating: null, throughput: null, isInApp },
      })),
    listSubscribedApps: async (wabaId, token) => {
      const { isSubscribed, override } = wabaFor(token, wabaId);
      return isSubscribed ? [{ id: APP.appId, name: 'app', overrideCallbackUrl: override }] : [];
    },
    subscribeApp: async (wabaId, token, override) => {
      const waba = wabaFor(token, wabaId);
      if (override !== null && !waba.isSubscribed) throw refusedWith(100);
      waba.isSubscribed = true;
      if (override !== null) waba.override = override.callbackUrl;
    },
    readNumberSetup: async (phoneNumberId, token) => {
      const { pin, ...number } = numberFor(token, phoneNumberId);
      return number;
    },
    registerNumber: async (phoneNumberId, token, pin) => {
      const number = numberFor(token, phoneNumberId);
      if (number.pin !== null && number.pin !== pin) throw refusedWith(133_005);
      Object.assign(number, { isRegistered: true, pin });
    },
    syncBusinessApp: async (phoneNumberId, token) => void numberFor(token, phoneNumberId),
  };

  /** Counts the calls, and fails those that a test wants to fail. */
  const watched = Object.fromEntries(
    Object.entries(calls).map(([name, call]) => [
      name,
      async (...given: never[]) => {
        const failure = failures.get(name as CallName)?.shift();
        if (failure instanceof GraphError) throw failure;
        seen.push(name as CallName);
        const answer = await (call as (...all: never[]) => Promise<unknown>)(...given);
        await failure?.();
        return answer;
      },
    ]),
  ) as Calls;

  return {
    calls: watched,
    count: (name: CallName) => seen.filter((one) => one === name).length,
    /** Has the next calls fail so; a function is run after the call was done. */
    failNext: (name: CallName, ...next: (GraphError | (() => Promise<void>))[]) =>
      void failures.set(name, next),
    passTime: (ms: number) => {
      nowMs += ms;
    },
    waba: (wabaId: string, numbers: Record<string, Partial<PlayedNumber>>): PlayedWaba => {
      const open = { isRegistered: false, isInApp: false, isInReview: false, pin: null };
      const made = Object.entries(numbers).map(([id, given]) => [id, { ...open, ...given }] as const);
      const waba = { numbers: new Map(made), isSubscribed: false, override: null };
      wabas.set(wabaId, waba);
      return waba;
    },
    /** What upstream gives when the customer consents for these WABAs. */
    consent: (wabaIds: string[], scopes = SCOPES) => {
      drawn += 1;
      const [code, token] = [`code-${drawn}`, `EAAG-secret-${drawn}-${'x'.repeat(40)}`];
      tokens.set(token, { wabaIds, scopes });
      codes.set(code, { token, givenAtMs: nowMs, isUsed: false });
      return { code, token };
    },
  };
}
