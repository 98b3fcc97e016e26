import { describe, expect, test } from 'vitest';
import { setupView } from '../../../src/api/setup/setup-view.ts';
import { FAILURE_CODES, type SetupFailure } from '../../../src/features/setup-links/setup-link-store.ts';
import type { SetupVisit } from '../../../src/features/setup-links/setup-visit.ts';
import { invalidValue } from '../../../src/platform/request-input.ts';

const VISIT: SetupVisit = {
  id: 'sl_17',
  businessName: 'Fixture <Store>',
  tenantId: '7',
  mode: 'signup',
  connections: ['cloud', 'coexistence'],
  state: 'open',
  failure: null,
  refusal: null,
  asks: { for: 'start' },
  isWorking: false,
  wabaId: null,
  phoneNumberId: null,
  attention: [],
  expiresAt: new Date('2026-12-01T10:00:00Z'),
  returnUrl: null,
};

const FAILURE: SetupFailure = {
  step: 'register',
  code: 'registration_refused',
  retryable: true,
  message: 'Meta did not register the number.',
  upstreamCode: 133_006,
  retryAt: null,
};

function pageOf(
  changes: Partial<SetupVisit>,
  more: Partial<Pick<Parameters<typeof setupView>[1], 'error' | 'findings'>> = {},
) {
  const place = { path: '/setup/links/sl_17', startPath: '/setup/open/token', ...more };
  const { body, lead, title, refresh } = setupView({ ...VISIT, ...changes }, place);
  return { title, refresh, text: `${lead ?? ''}${body}` };
}

const formsIn = (text: string) =>
  [...text.matchAll(/<form method="post" action="([^"]+)"/g)].map(([, to]) => to);

describe('a link', () => {
  test('calls the platform by the name that customers know, whatever the texts of the API and of checks say', () => {
    const message = 'Upstream refuses: ask upstream.';
    const question = 'Does upstream accept it?';
    const finding = { status: 'down' as const, question, detail: message };
    const names = [
      'token',
      'subscription',
      'numbers',
      'following',
      'activity',
      'items',
      'endpoints',
    ] as const;
    const found = Object.fromEntries(names.map((name) => [name, finding]));
    const findings = found as Record<(typeof names)[number], typeof finding>;
    for (const code of FAILURE_CODES) {
      const failure = { ...FAILURE, code, message };
      for (const asks of [{ for: 'retry' as const }, { for: 'token' as const }, null]) {
        const error = invalidValue(message, 'accessToken');
        const { text } = pageOf({ state: 'failed', failure, asks }, { error, findings });
        expect(text.replaceAll(/<code>[^<]*<\/code>/g, '')).not.toMatch(/upstream/i);
        expect(text).toContain('Meta refuses: ask Meta.');
      }
    }
  });

  test('that is open has one button, and no text of others as markup', () => {
    const { title, text, refresh } = pageOf({});
    expect([title, formsIn(text), refresh]).toEqual([
      'Connect your WhatsApp number',
      ['/setup/open/token'],
      undefined,
    ]);
    expect(text).toContain('Fixture &lt;Store&gt;');
    expect(text).toContain('Continue to Meta');
  });

  test('that is worked at shows how far it is, and is looked at again by itself', () => {
    const { text, refresh } = pageOf({ state: 'subscribed', asks: null, isWorking: true });
    expect(refresh).toEqual({ seconds: 3 });
    expect(text.match(/Done:/g)).toHaveLength(2);
    expect(text.match(/aria-current="step"/g)).toHaveLength(1);
    expect(formsIn(text)).toEqual([]);
  });

  test('that is done leads back, and says what needs attention', () => {
    const returnUrl = 'https://crm.example/done?setupLink=sl_17&status=done&state=a%22b';
    const { text, refresh } = pageOf({
      state: 'done',
      asks: null,
      returnUrl,
      attention: ['number_in_review'],
    });
    expect(refresh).toEqual({ seconds: 8, url: returnUrl });
    expect(text).toContain('href="https://crm.example/done?setupLink=sl_17&amp;status=done&amp;state=a%22b"');
    expect(text).toContain('Return to crm.example');
    expect(text).toContain('reviews the display name');
    expect(text.match(/Done:/g)).toHaveLength(4);
  });

  test.each(['link_expired', 'link_revoked', 'link_used', 'tenant_suspended'] as const)(
    'that is refused as %s has no form',
    (refusal) => {
      const { text, refresh } = pageOf({ refusal, asks: null });
      expect([formsIn(text), refresh]).toEqual([[], undefined]);
    },
  );
});

describe('a failure', () => {
  test.each(FAILURE_CODES)('%s has advice, its code and a way on', (code) => {
    const { text, title, refresh } = pageOf({
      state: 'failed',
      failure: { ...FAILURE, code },
      asks: { for: 'retry' },
      returnUrl: 'https://crm.example/failed',
    });
    expect(title).toBe('The number is not connected yet');
    expect(text).toContain(`<code>${code}</code>`);
    expect(text).toContain('<code>133006</code>');
    expect(text).toContain('role="alert"');
    expect(formsIn(text)).toEqual(['/setup/links/sl_17/retry']);
    expect(refresh).toBeUndefined();
  });

  test('that must wait says until when, and has no button before', () => {
    const failure = {
      ...FAILURE,
      code: 'registration_rate_limited' as const,
      retryAt: '2026-11-30T08:00:00Z',
    };
    const { text, refresh } = pageOf({
      state: 'failed',
      failure,
      asks: null,
      returnUrl: 'https://crm.example/failed',
    });
    expect([formsIn(text), refresh]).toEqual([[], undefined]);
    expect(text).toContain('2026-11-30');
  });

  test('for good leads back by itself', () => {
    const returnUrl = 'https://crm.example/failed';
    const failure = { ...FAILURE, retryable: false };
    expect(pageOf({ state: 'failed', failure, asks: null, returnUrl }).refresh).toEqual({
      seconds: 8,
      url: returnUrl,
    });
  });

  test('of a step of the dialog belongs to the first stage', () => {
    const failure = { ...FAILURE, code: 'flow_abandoned' as const, step: 'PHONE_NUMBER_SETUP' };
    const { text } = pageOf({ state: 'cancelled', failure, asks: { for: 'start' } });
    expect(text).not.toContain('Done:');
    expect(formsIn(text)).toEqual(['/setup/open/token']);
  });
});

describe('a question', () => {
  test('shows the choices that upstream named, as text', () => {
    const options = [
      { id: '920000000000001', label: '<b>One</b>' },
      { id: '920000000000002', label: 'Two' },
    ];
    const { text } = pageOf({ state: 'authorized', asks: { for: 'waba', options } });
    expect(formsIn(text)).toEqual(['/setup/links/sl_17/choice']);
    expect(text.match(/type="radio" name="id" value="92/g)).toHaveLength(2);
    expect(text).toContain('&lt;b&gt;One&lt;/b&gt;');
  });

  test('for the PIN says how many tries are left, and is not an error', () => {
    const failure = { ...FAILURE, code: 'pin_required' as const };
    const last = pageOf({ state: 'failed', failure, asks: { for: 'pin', triesLeft: 1 } });
    expect(last.text).toContain('One try is left.');
    expect(last.text).not.toContain('role="alert"');
    expect(formsIn(last.text)).toEqual(['/setup/links/sl_17/pin']);
  });

  test('for a token stands beside what is wrong with it, and never shows the token again', () => {
    const error = invalidValue('Upstream does not show the WABA for this token.', 'accessToken');
    const { text } = pageOf({ mode: 'steps', state: 'started', asks: { for: 'token' } }, { error });
    expect(text).toContain('id="accessToken-problem">Meta does not show');
    expect(text).toContain('aria-invalid="true"');
    expect(formsIn(text)).toEqual(['/setup/links/sl_17/token']);
  });
});
