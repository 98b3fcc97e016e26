import { describe, expect, test } from 'vitest';
import { upstreamExample } from '../../../src/api/openapi/webhooks/upstream-examples.ts';
import { STANDARD_SAMPLES } from '../../../src/api/portal/endpoints/secret-page.ts';
import { webhookHeaders } from '../../../src/engine/deliveries/webhook-request.ts';
import { SETTINGS } from '../../../src/platform/config/settings.ts';
import { EVENT_TYPES } from '../../../src/platform/event-type.ts';
import { DEFAULT_RETRY_SCHEDULE_MS } from '../../../src/platform/retry-schedule.ts';
import { repositoryFile } from './compose-file.ts';
import { exampleEvents } from './example-events.ts';

const DOCUMENT = repositoryFile('docs/tenants/webhooks.md');
const EVENTS = repositoryFile('docs/tenants/events.md');

/** The JSON below `<!-- example: type -->`. */
function documentedExample(type: string): string {
  const block = new RegExp(`<!-- example: ${type} -->\\n\`\`\`json\\n([\\s\\S]*?)\\n\`\`\``).exec(EVENTS);
  if (block?.[1] === undefined) throw new Error(`docs/tenants/events.md shows no example of ${type}`);
  return block[1];
}

describe('the pages about webhooks and events', () => {
  test.each(EVENT_TYPES)('the example of %s is what the service makes of an upstream body', (type) => {
    const expected = JSON.stringify(JSON.parse(exampleEvents()[type]), null, 2);
    expect(documentedExample(type)).toBe(expected);
  });

  test('the example of a field of upstream is that of the API description', () => {
    const field = 'message_template_status_update';
    const expected = JSON.stringify(upstreamExample(field), null, 2);
    expect(documentedExample(`upstream.${field}`)).toBe(expected);
  });

  test('names every header of a webhook', () => {
    const headers = webhookHeaders({
      webhookId: 'evt_1',
      timestampSeconds: 1,
      signature: 'v1,x',
      eventType: 'message',
      eventId: 'x',
      deliveryId: 'dlv_1',
      attempt: 1,
      sequence: 1,
      replay: false,
    });
    for (const name of Object.keys(headers))
      expect(DOCUMENT.toLowerCase()).toContain(`\`${name.toLowerCase()}\``);
  });

  test('shows for the raw body and its signature the code of the portal', () => {
    const document = repositoryFile('docs/tenants/signatures.md');
    for (const { label, code } of STANDARD_SAMPLES) expect(document, label).toContain(code);
  });

  test('says after how many days of failures an endpoint is disabled', () => {
    const days = Number(SETTINGS.HELIOGRAPH_WEBHOOK_DISABLE_AFTER_HOURS.fallback) / 24;
    expect(DOCUMENT).toContain(`has only failed for ${days} days`);
    expect(repositoryFile('README.md')).toContain(`after ${days} days without a success`);
  });

  test('tells the waits between attempts as they are', () => {
    const waits = DEFAULT_RETRY_SCHEDULE_MS.map((waitMs) => {
      const seconds = waitMs / 1000;
      if (seconds < 60) return `${seconds} s`;
      return seconds < 3600 ? `${seconds / 60} min` : `${seconds / 3600} h`;
    });
    expect(DOCUMENT).toContain(waits.join(', '));
    expect(repositoryFile('README.md')).toContain(waits.join(', '));
  });
});
