import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listPhoneNumbers } from '../../../src/features/accounts/accounts.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { startAdmin, WABA } from '../../support/admin-cli.ts';
import { startReceiver } from '../../support/webhook-receiver.ts';

function graphFixture(name: string) {
  return JSON.parse(
    readFileSync(new URL(`../../fixtures/upstream/graph/${name}.json`, import.meta.url), 'utf8'),
  );
}

/** Answers every request to the Graph API in the same way. */
async function startGraph(fixture: string) {
  const { status, body } = graphFixture(fixture);
  const graph = await startReceiver((_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    return status;
  });
  onTestFinished(() => graph.close());
  return graph;
}

describe('admin waba add --from-upstream', () => {
  test('adds the numbers that upstream lists, asked with the token given or the stored one', async () => {
    const graph = await startGraph('phone_numbers_200');
    const { database, json, admin } = await startAdmin({
      settings: { HELIOGRAPH_UPSTREAM_GRAPH_URL: graph.url },
    });
    const lookUps = () =>
      query(database, `select waba_id from workflow_tasks where workflow_type = 'refreshNumbers'`);
    const [{ userId }] = await json('waba', 'list');
    const add = ['waba', 'add', '--tenant', String(userId), '--waba', WABA, '--from-upstream', '--json'];
    expect(await admin(add)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('no access token'),
    });
    expect(await lookUps()).toEqual([]);
    const run = await admin([...add, '--access-token-stdin'], 'EAAGtest\n');
    expect(run).toMatchObject({ exitCode: 0, stderr: '' });
    // Of the worker, which copies the templates too.
    expect(await lookUps()).toEqual([{ waba_id: WABA }]);
    const { data } = graphFixture('phone_numbers_200').body;
    const stored = await listPhoneNumbers(database, WABA);
    for (const { id, display_phone_number, verified_name } of data) {
      expect(stored).toContainEqual(
        expect.objectContaining({
          phoneNumberId: id,
          displayPhoneNumber: display_phone_number,
          verifiedName: verified_name,
        }),
      );
    }
    expect(await admin(add)).toMatchObject({ exitCode: 0 });
    expect(graph.received.map(({ headers }) => headers.authorization)).toEqual(
      Array(graph.received.length).fill('Bearer EAAGtest'),
    );
  });

  test('changes nothing when upstream refuses the token, and never repeats the token', async () => {
    const graph = await startGraph('err_190_token');
    const { json, admin } = await startAdmin({ settings: { HELIOGRAPH_UPSTREAM_GRAPH_URL: graph.url } });
    const before = await json('waba', 'list');
    const add = ['waba', 'add', '--tenant', String(before[0].userId), '--waba', WABA, '--from-upstream'];
    const run = await admin([...add, '--access-token', 'EAAGexpired']);
    expect(run).toMatchObject({ exitCode: 1, stdout: '' });
    expect(run.stderr).toMatch(
      /^error: Could not read the phone numbers from the upstream platform: [^\n]+\n$/,
    );
    expect(run.stderr).not.toContain('EAAGexpired');
    expect(await json('waba', 'list')).toEqual(before);
  });
});
