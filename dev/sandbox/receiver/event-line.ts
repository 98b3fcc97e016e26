import { createColors } from 'picocolors';
import { eventSummary } from './event-summary.ts';
import type { ReceivedWebhook } from './received-webhooks.ts';

type Colors = ReturnType<typeof createColors>;

const SHORT_ID_CHARACTERS = 12;

/** The end of an event id: the beginnings of upstream ids are all alike. */
function shortId(eventId: string): string {
  const clean = printableText(eventId, 500);
  return clean.length <= SHORT_ID_CHARACTERS ? clean : `…${clean.slice(1 - SHORT_ID_CHARACTERS)}`;
}

function typeColor(colors: Colors, eventType: string): (text: string) => string {
  const byType: Record<string, (text: string) => string> = {
    message: colors.cyan,
    status: colors.blue,
    payment: colors.magenta,
    order: colors.yellow,
    'media.ready': colors.green,
  };
  return (Object.hasOwn(byType, eventType) ? byType[eventType] : undefined) ?? colors.white;
}

function verdict(colors: Colors, webhook: ReceivedWebhook): string {
  const mark = webhook.verified ? colors.green('✓ verified') : colors.red('✗ signature wrong');
  const attempt = printableText(webhook.headers['x-service-attempt'] ?? '', 10);
  const notes = [
    attempt === '' ? '' : `attempt ${attempt}`,
    webhook.headers['x-service-replay'] === undefined ? '' : colors.yellow('replay'),
    webhook.duplicate ? colors.yellow('duplicate') : '',
    webhook.name === '' ? '' : colors.dim(`at ${printableText(webhook.name, 40)}`),
    webhook.verified && webhook.status !== 200 ? colors.red(`answered ${webhook.status ?? 'nothing'}`) : '',
  ];
  return [mark, ...notes].filter((note) => note !== '').join('  ');
}

/** One coloured line about a received webhook, safe to print whatever the sender put into it. */
export function eventLine(webhook: ReceivedWebhook, useColor: boolean): string {
  const colors = createColors(useColor);
  const { eventType, eventId, data } = readEnvelope(webhook.body);
  const type = printableText(eventType, 20);
  const summary = printableText(eventSummary(eventType, data), 100);
  return [
    colors.dim(webhook.receivedAt.slice(11, 23)),
    typeColor(colors, eventType)(type.padEnd(11)),
    colors.dim(shortId(eventId).padEnd(SHORT_ID_CHARACTERS)),
    summary,
    verdict(colors, webhook),
  ]
    .filter((part) => part !== '')
    .join('  ');
}

/** What every event has around its data. */
type Envelope = { eventType: string; eventId: string; data: unknown };

/** Reads the body of a webhook; any text is accepted. */
export function readEnvelope(body: string): Envelope {
  try {
    const parsed: Record<string, unknown> | null = JSON.parse(body);
    const { eventType, eventId, data } = parsed ?? {};
    return {
      eventType: typeof eventType === 'string' ? eventType : '?',
      eventId: typeof eventId === 'string' ? eventId : '',
      data,
    };
  } catch {
    return { eventType: 'not JSON', eventId: '', data: undefined };
  }
}

/**
 * Text that is safe to print on a terminal: without control and direction characters, on one line, at
 * most maxCharacters long.
 */
export function printableText(text: string, maxCharacters = 80): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim();
  const characters = [...clean];
  return characters.length > maxCharacters ? `${characters.slice(0, maxCharacters - 1).join('')}…` : clean;
}
