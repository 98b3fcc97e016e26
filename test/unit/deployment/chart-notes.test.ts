import { beforeAll, describe, expect, test } from 'vitest';
import { BUILD_TIMEOUT_MS, GO, goProgram } from './go-programs.ts';
import { MINIMAL, renderNotes } from './rendered-chart.ts';

describe.skipIf(GO === undefined)('what helm says of the installed chart', () => {
  beforeAll(async () => void (await goProgram('helm')), BUILD_TIMEOUT_MS);

  const PASSED_ON = 'must pass bodies on while they come';

  test.each([
    [{ ingress: { enabled: true } }, 'The ingress controller'],
    [{ gateway: { enabled: true, parentRefs: [{ name: 'public' }] } }, 'The gateway'],
  ])('whatever stands in front must not collect bodies: %j', async (values, name) => {
    const notes = await renderNotes({ ...MINIMAL, ...values });
    expect(notes).toContain(`${name} ${PASSED_ON}`);
    expect(notes).not.toContain('nothing outside the cluster reaches the API');
  });

  test('nothing is said of it where the chart puts nothing in front', async () => {
    const notes = await renderNotes(MINIMAL);
    expect(notes).not.toContain(PASSED_ON);
    expect(notes).toContain('nothing outside the cluster reaches the API');
  });
});
