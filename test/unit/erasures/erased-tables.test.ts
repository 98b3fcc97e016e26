import { expect, test } from 'vitest';
import {
  type ErasureReport,
  reportText,
  signReport,
  verifyReport,
} from '../../../src/ops/erasures/erasure-report.ts';
import { parseEncryptionKeys } from '../../../src/platform/crypto/secret-box.ts';
import { schemaText } from '../architecture/schema-text.ts';

/**
 * Every table, by what an erasure does to it. A new table belongs into one of the lists: if it can hold anything of a
 * customer, its room has to offer what erases it, a step in src/ops/erasures/steps has to call that, and the scans of test/integration/erasures have to fill it.
 */
const TABLES = {
  /** What can name a customer, or hold what they wrote: gone with the customer, and with the WABA. */
  ofCustomers: [
    ...[
      'inbox',
      'waiting_bodies',
      'contacts',
      'conversations',
      'messages',
      'message_statuses',
      'message_states',
      'history_pieces',
    ],
    ...['group_details', 'group_members'],
    ...[
      'media',
      'orders',
      'payment_reports',
      'events',
      'ordering_keys',
      'deliveries',
      'attempts',
      'delivery_queue',
    ],
    ...[
      'workflow_tasks',
      'outbound_messages',
      'scheduled_messages',
      'broadcast_recipients',
      'send_pacing',
      'phone_aliases',
      'opt_outs',
      'media_uploads',
      'media_upstream_ids',
    ],
    ...['idempotency_keys', 'erasures'],
  ],
  /** Of a WABA or tenant, and of no customer. */
  ofAccounts: [
    ...[
      'tenants',
      'tenant_policies',
      'wabas',
      'phone_numbers',
      'api_keys',
      'api_key_requests',
      'webhook_endpoints',
      'endpoint_health',
    ],
    ...[
      'catalog_products',
      'alerts',
      'alert_reads',
      'alert_notices',
      'replays',
      'broadcasts',
      'memberships',
      'invitations',
    ],
    ...[
      'usage_days',
      'usage_changes',
      'usage_costs',
      'tenant_usage',
      'upstream_troubles',
      'message_templates',
      'waba_hours',
      'setup_links',
    ],
  ],
  /** Of users of the portal. */
  ofUsers: [
    ...[
      'users',
      'user_sessions',
      'portal_links',
      'user_identities',
      'user_totp',
      'recovery_codes',
      'user_notices',
      'mails',
    ],
  ],
  /** Hashes, counts, times and ids of ours: they stay. */
  impersonal: [
    ...[
      'dedup_keys',
      'quarantine_counts',
      'intake_epochs',
      'endpoint_minutes',
      'endpoint_failures',
      'endpoint_changes',
      'platform_keys',
      'brands',
      'operations_hooks',
      'rate_limits',
    ],
    ...[
      'worker_processes',
      'system_figures',
      'password_salt',
      'installation_secrets',
      'erased_items',
      'erasure_salt',
      'erased_files',
    ],
    ...['erased_repeats', 'housekeeping_steps', 'schema_files', 'ordering_key_floor'],
  ],
  /** Names operators and users, for good. */
  kept: ['audit_log', 'audit_chain'],
};

test('it is known of every table whether an erasure has to do with it', () => {
  const tables = [...schemaText().matchAll(/^create (?:unlogged )?table (\w+)(?! partition)(?= \()/gm)].map(
    ([, name = '']) => name,
  );
  expect(tables.length).toBeGreaterThan(50);
  expect(Object.values(TABLES).flat().toSorted()).toEqual(tables.toSorted());
});

const KEYS = parseEncryptionKeys(`k1:${Buffer.alloc(32, 1).toString('base64')}`);
const OTHER_KEYS = parseEncryptionKeys(`k2:${Buffer.alloc(32, 2).toString('base64')}`);

const REPORT: ErasureReport = {
  version: 1,
  erasureId: '7',
  kind: 'customer',
  subjectId: '311',
  wabaId: '900000000000101',
  tenantId: '3',
  requestedBy: 'API key 3',
  requestedAt: '2026-11-21T09:30:00.000Z',
  startedAt: '2026-11-21T09:30:00.350Z',
  finishedAt: '2026-11-21T09:30:04.120Z',
  counts: { messages: 12, events: 31 },
  refused: {},
};

test('a report is valid as it was signed, by whom the settings know, and no other way', () => {
  const signature = signReport(reportText(REPORT), KEYS);
  const signed = { report: REPORT, signature };
  expect(verifyReport(JSON.parse(JSON.stringify(signed)), KEYS)).toBe('valid');
  // The order of members is no part of it.
  const turned = Object.fromEntries(Object.entries(REPORT).toReversed());
  expect(verifyReport({ report: turned, signature }, [...OTHER_KEYS, ...KEYS])).toBe('valid');
  expect(verifyReport(signed, OTHER_KEYS)).toBe('foreign');
  expect(verifyReport({ ...signed, report: { ...REPORT, counts: { messages: 13, events: 31 } } }, KEYS)).toBe(
    'invalid',
  );
  const other = signReport(reportText(REPORT), OTHER_KEYS);
  expect(verifyReport({ ...signed, signature: { ...signature, value: other.value } }, KEYS)).toBe('invalid');
  expect(verifyReport({ ...signed, signature: { ...signature, publicKey: 'AAAA' } }, KEYS)).toBe('invalid');
  for (const document of [null, 7, {}, { report: REPORT }, { report: { version: 2 }, signature }])
    expect(() => verifyReport(document, KEYS)).toThrow(/no report of an erasure/);
});

test('what is signed is what jq prints', () => {
  expect(reportText({ ...REPORT, counts: { b: 1, a: 2 } })).toBe(
    '{"counts":{"a":2,"b":1},"erasureId":"7","finishedAt":"2026-11-21T09:30:04.120Z","kind":"customer",' +
      '"refused":{},"requestedAt":"2026-11-21T09:30:00.000Z","requestedBy":"API key 3","startedAt":"2026-11-21T09:30:00.350Z",' +
      '"subjectId":"311","tenantId":"3","version":1,"wabaId":"900000000000101"}',
  );
});
