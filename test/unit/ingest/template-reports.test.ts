import { expect, test } from 'vitest';
import { templateReports } from '../../../src/ingest/fields/templates.ts';
import { splitUpstreamBody } from '../../../src/ingest/split/upstream-items.ts';

const OFFER = {
  message_template_id: 500000000000001,
  message_template_name: 'offer',
  message_template_language: 'en-US',
};

/** What a change in a field says of the template. */
function saidBy(field: string, value: object) {
  const entry = [{ id: '900000000000101', time: 1_790_000_000, changes: [{ field, value }] }];
  const { items } = splitUpstreamBody(Buffer.from(JSON.stringify({ entry })));
  const reports = items.flatMap((item) =>
    item.kind === 'upstream' ? templateReports(item, new Date()) : [],
  );
  return reports.map(({ language, status, category, rejectedReason }) => {
    return [language, status, category, rejectedReason];
  });
}

test.each([
  ['APPROVED', 'APPROVED'],
  ['REINSTATED', 'APPROVED'],
  ['UNPAUSED', 'APPROVED'],
  ['UNARCHIVED', 'APPROVED'],
  ['ARCHIVED', 'ARCHIVED'],
  ['LOCKED', 'LOCKED'],
  ['LIMIT_EXCEEDED', 'LIMIT_EXCEEDED'],
  ['IN_APPEAL', 'IN_APPEAL'],
  ['paused', 'PAUSED'],
])('the event %s makes a template %s', (event, status) => {
  expect(saidBy('message_template_status_update', { ...OFFER, event, reason: null })).toEqual([
    ['en_US', status, null, null],
  ]);
});

test.each([
  [{ reason: 'NONE' }, null],
  [{ reason: 'INVALID_FORMAT' }, 'INVALID_FORMAT'],
  [{ reason: null, rejection_info: { reason: 'Two languages' } }, 'Two languages'],
])('the reason is read from %j', (more, why) => {
  expect(saidBy('message_template_status_update', { ...OFFER, event: 'REJECTED', ...more })).toEqual([
    ['en_US', 'REJECTED', null, why],
  ]);
});

test.each([
  ['completed', { previous_category: 'UTILITY', new_category: 'marketing' }, 'MARKETING'],
  ['announced', { correct_category: 'MARKETING', new_category: 'UTILITY' }, null],
  [
    'announced, with the one before',
    { previous_category: 'AUTHENTICATION', correct_category: 'MARKETING', new_category: 'UTILITY' },
    null,
  ],
  ['without the one before', { new_category: 'MARKETING' }, null],
])('of a change of category that is %s, a template has %s', (_name, value, category) => {
  const said = saidBy('template_category_update', { ...OFFER, ...value });
  expect(said).toEqual(category === null ? [] : [['en_US', null, category, null]]);
});
