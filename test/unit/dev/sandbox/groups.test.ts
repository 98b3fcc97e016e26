import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createSandboxCommand } from '../../../../dev/sandbox/cli.ts';
import { DEMO_PHONE_NUMBER_ID } from '../../../../dev/sandbox/demo-accounts.ts';
import { readGroupReports } from '../../../../src/ingest/split/groups.ts';
import { parseJson } from '../../../../src/platform/json/json-text.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { graph, postJson, startSandbox } from './sandbox-harness.ts';

const ASHA = '12025550143';
const FARAH = '12025550150';

async function world() {
  const sandbox = await startSandbox();
  const changes = () =>
    sandbox.ingress.webhooks.map(({ bytes }) => JSON.parse(bytes.toString()).entry[0].changes[0]);
  const post = async (path: string, body: object) => {
    const response = await postJson(`${sandbox.url}${path}`, body);
    return { status: response.status, ...(await response.json()) };
  };
  return { ...sandbox, changes, post };
}

test('a group is made, joined, left, renamed, blocked and deleted, and the service reads each report', async () => {
  const { post, changes } = await world();
  const { id } = await post('/sandbox/groups', {
    subject: 'Trip',
    description: 'To Lisbon',
    members: [ASHA],
  });
  for (const change of [
    { action: 'join', members: [FARAH] },
    { action: 'leave', members: [ASHA] },
    { action: 'rename', subject: 'Porto' },
    { action: 'suspend' },
    { action: 'release' },
    { action: 'delete' },
  ]) {
    expect((await post(`/sandbox/groups/${id}`, change)).status).toBe(200);
  }
  const reports = changes().flatMap(({ value }) => readGroupReports(parseJson(JSON.stringify(value))));
  expect(reports.every(({ groupId }) => groupId === id)).toBe(true);
  expect(reports).toMatchObject([
    { state: 'active', subject: 'Trip', description: 'To Lisbon' },
    { people: [{ waId: ASHA, state: 'member' }] },
    { people: [{ waId: FARAH, state: 'member' }] },
    { people: [{ waId: ASHA, state: 'left' }] },
    { subject: 'Porto' },
    { state: 'suspended' },
    { state: 'active' },
    { state: 'deleted' },
  ]);
  expect((await post(`/sandbox/groups/${id}`, { action: 'suspend' })).error.code).toBe('unknown_group');
  expect((await post('/sandbox/groups', { subject: '' })).status).toBe(400);
});

test('a message to a group has a status as a whole, and one of each member afterwards', async () => {
  const { url, post, changes } = await world();
  const { id } = await post('/sandbox/groups', { subject: 'Trip', members: [ASHA, FARAH] });
  const body = {
    messaging_product: 'whatsapp',
    recipient_type: 'group',
    to: id,
    type: 'text',
    text: { body: 'Hello all' },
  };
  const answer = await (await postJson(`${url}/v26.0/${DEMO_PHONE_NUMBER_ID}/messages`, body)).json();
  expect(answer).toMatchObject({ contacts: [{ input: id, wa_id: id }], messages: [{ group_id: id }] });
  const statuses = () => changes().flatMap(({ value }) => value.statuses ?? []);
  await eventually('all statuses are there', async () => statuses().length === 5);
  expect(statuses().map(({ status, recipient_participant_id: of }) => `${status} ${of ?? 'all'}`)).toEqual([
    'sent all',
    `delivered ${ASHA}`,
    `delivered ${FARAH}`,
    `read ${ASHA}`,
    `read ${FARAH}`,
  ]);
  const withContacts = changes().filter(({ value }) => value.statuses?.[0].recipient_participant_user_id);
  expect(withContacts.map(({ value }) => value.contacts[0].user_id)).toEqual(
    withContacts.map(({ value }) => value.statuses[0].recipient_participant_user_id),
  );
  expect(withContacts).toHaveLength(4);
  expect(statuses().every((one) => one.recipient_id === id && one.recipient_type === 'group')).toBe(true);
});

test('a group can be made, listed, shown and deleted by the Graph API', async () => {
  const { url, changes } = await world();
  const path = `${url}/v26.0/${DEMO_PHONE_NUMBER_ID}/groups`;
  const made = await (await postJson(path, { messaging_product: 'whatsapp', subject: 'Trip' })).json();
  expect(made).toEqual({ messaging_product: 'whatsapp', request_id: expect.any(String) });
  await eventually('it is reported', async () => changes().length === 1);
  const { data } = await (await graph(path)).json();
  const [{ id }] = data.groups;
  expect(await (await graph(`${url}/v26.0/${id}`)).json()).toMatchObject({
    id,
    subject: 'Trip',
    suspended: false,
  });
  const gone = await graph(`${url}/v26.0/${id}`, { method: 'DELETE' });
  expect(gone.status).toBe(200);
  expect((await (await graph(path)).json()).data.groups).toEqual([]);
  expect((await postJson(path, {})).status).toBe(400);
});

test('commands make groups and write in them, and find the state of another --data-dir', async () => {
  const { url, changes } = await world();
  const folder = await mkdtemp(join(tmpdir(), 'heliograph-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'embedded.json'), JSON.stringify({ sandboxUrl: url }));
  let out = '';
  const run = async (...args: string[]) => {
    const write = (text: string) => {
      out += text;
    };
    const options = { stateFile: '/nowhere/embedded.json', write, writeError: write, setExitCode: () => {} };
    await createSandboxCommand(options).parseAsync([...args], { from: 'user' });
  };
  await run('group', 'create', 'Trip', '--member', `+${ASHA}`);
  expect(out).toContain('--data-dir');
  out = '';
  await run('group', 'create', 'Trip', '--member', `+${ASHA}`, '--data-dir', folder, '--json');
  const { id } = JSON.parse(out);
  await run('message', 'Hi', '--group', id, '--data-dir', folder);
  expect(changes().at(-1)?.value.messages).toMatchObject([{ group_id: id, from: ASHA }]);
  await run('group', 'rename', id, '--subject', 'Porto', '--data-dir', folder);
  expect(changes().at(-1)?.value.groups).toMatchObject([{ group_subject: { text: 'Porto' } }]);
});
