import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { alertName } from '../../../src/ops/alerts/alert-envelope.ts';
import { ALERT_KINDS, anchorOf, KINDS } from '../../../src/ops/alerts/alert-kinds.ts';

const RUNBOOKS = read('docs/operators/runbooks.md');

function read(path: string): string {
  return readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
}

/** Headings as the anchors that links to them have. */
const ANCHORS = [...RUNBOOKS.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
  heading.toLowerCase().replaceAll(' ', '-'),
);

describe('every alert has its runbook', () => {
  test.each(ALERT_KINDS)('%s, the same in the portal and in the document', (kind) => {
    const { title, meaning, steps } = KINDS[kind];
    const list = steps.map((step, index) => `${index + 1}. ${step}`).join('\n');
    expect(RUNBOOKS).toContain(`### ${title}\n\n${meaning}\n\n${list}\n`);
    expect(ANCHORS.filter((anchor) => anchor === anchorOf(kind))).toHaveLength(1);
    expect(steps.length).toBeGreaterThan(0);
  });

  const notices = ALERT_KINDS.flatMap((kind) => KINDS[kind].notice ?? []);

  test.each(notices)('the notice %s is in the table for tenants', (notice) => {
    expect(read('docs/tenants/endpoint-alerts.md')).toContain(`\n| \`${alertName(notice)}\` | `);
  });

  const { groups } = parse(read('charts/heliograph/files/alert-rules.yaml')) as {
    groups: { rules: { alert: string; annotations: Record<string, string> }[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);

  test.each(rules.map(({ alert, annotations }) => [alert, annotations.runbook] as const))(
    'the rule %s',
    (alert, runbook) => {
      expect(runbook).toBe(`docs/operators/runbooks.md#${alert.toLowerCase()}`);
      expect(ANCHORS).toContain(alert.toLowerCase());
    },
  );

  test('the document has no runbook of something else', () => {
    const headings = [...RUNBOOKS.matchAll(/^### (.+)$/gm)].map(([, heading]) => heading);
    const known = [...ALERT_KINDS.map((kind) => KINDS[kind].title), ...rules.map(({ alert }) => alert)];
    expect(headings).toEqual(known);
  });
});
