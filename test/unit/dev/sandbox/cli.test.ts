import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createSandboxCommand } from '../../../../dev/sandbox/cli.ts';
import { splitUpstreamBody } from '../../../../src/ingest/split/upstream-items.ts';
import { KNOWN_FIELDS } from '../../../../src/platform/upstream-fields.ts';
import { graph, startSandbox } from './sandbox-harness.ts';

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sandbox-cli-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

/** Runs one command as `npm run sandbox -- …` does. */
async function run(stateFile: string, ...args: string[]) {
  const result = { out: '', error: '', exitCode: 0 };
  const command = createSandboxCommand({
    stateFile,
    write: (text) => {
      result.out += text;
    },
    writeError: (text) => {
      result.error += text;
    },
    setExitCode: (code) => {
      result.exitCode = code;
    },
  });
  await command.parseAsync(args, { from: 'user' });
  return result;
}

async function startStack() {
  const sandbox = await startSandbox();
  const folder = await temporaryFolder();
  const stateFile = join(folder, 'embedded.json');
  await writeFile(stateFile, JSON.stringify({ sandboxUrl: sandbox.url }));
  return {
    ...sandbox,
    folder,
    stateFile,
    lastValue: () => {
      const text = sandbox.ingress.webhooks.at(-1)?.bytes.toString() ?? '';
      const [entry] = JSON.parse(text).entry;
      return { wabaId: entry.id, ...entry.changes[0].value };
    },
  };
}

describe('sending commands', () => {
  test('message sends text of the named customer to the named number', async () => {
    const { stateFile, lastValue } = await startStack();
    const args = ['--from', '+1 202-555-0199', '--name', 'Zoë', '--phone', '800000000000112'];
    const { out, exitCode } = await run(stateFile, 'message', 'hello ✓', ...args);
    expect(exitCode).toBe(0);
    expect(out).toMatch(
      /^sent text message\n {2}id {8}wamid\.\S+\n {2}answered {2}200 in [\d.]+ ms\n {2}to {8}Fixture Store 2, .*\n$/,
    );
    expect(lastValue()).toMatchObject({
      metadata: { phone_number_id: '800000000000112' },
      contacts: [{ profile: { name: 'Zoë' }, wa_id: '12025550199' }],
      messages: [{ from: '12025550199', text: { body: 'hello ✓' } }],
    });
  });

  test('--json prints one object with the id and the answer', async () => {
    const { stateFile, lastValue } = await startStack();
    const { out } = await run(stateFile, 'message', 'hello', '--json');
    expect(JSON.parse(out)).toMatchObject({
      status: 200,
      id: lastValue().messages[0].id,
      ms: expect.any(Number),
    });
  });

  test.each([
    ['image', 'image/jpeg', 'sandbox-sunset.jpg'],
    ['video', 'video/mp4', 'sandbox-sunset.mp4'],
    ['audio', 'audio/ogg; codecs=opus', 'sandbox-voice.ogg'],
    ['document', 'application/pdf', 'sandbox-order-form.pdf'],
    ['sticker', 'image/webp', 'sandbox-sticker.webp'],
  ])('%s without a file sends a sample that can be downloaded', async (type, mimeType, asset) => {
    const { stateFile, lastValue } = await startStack();
    expect((await run(stateFile, type)).exitCode).toBe(0);
    const media = lastValue().messages[0][type];
    expect(media.mime_type).toBe(mimeType);
    const bytes = Buffer.from(await (await graph(media.url)).arrayBuffer());
    const sample = new URL(`../../../../dev/console/assets/${asset}`, import.meta.url);
    expect(bytes.equals(await readFile(sample))).toBe(true);
  });

  test.each([
    ['image', 'photo.JPG', 'image/jpeg'],
    ['video', 'clip.mp4', 'video/mp4'],
    ['audio', 'note.ogg', 'audio/ogg; codecs=opus'],
    ['document', 'रसीद.pdf', 'application/pdf'],
    ['sticker', 'hi.webp', 'image/webp'],
  ])('%s sends the bytes of a file with its type', async (type, name, mimeType) => {
    const { stateFile, folder, lastValue } = await startStack();
    const file = join(folder, name);
    await writeFile(file, `bytes of ${name}`);
    expect((await run(stateFile, type, file)).exitCode).toBe(0);
    const media = lastValue().messages[0][type];
    expect(media.mime_type).toBe(mimeType);
    expect(await (await graph(media.url)).text()).toBe(`bytes of ${name}`);
    expect(media.filename).toBe(type === 'document' ? name : undefined);
  });

  test('order and payment go to the tenant of the printed API key, in INR, and say so', async () => {
    const { stateFile, lastValue } = await startStack();
    const { out } = await run(
      stateFile,
      'order',
      '--item',
      'sku-a:2:149.50:INR',
      '--item',
      'मसाला:01:1:7:INR',
    );
    expect(out).toContain('to        Fixture Store, WABA 900000000000101, phone number 800000000000111');
    expect(lastValue()).toMatchObject({ wabaId: '900000000000101', messages: [{ type: 'order' }] });
    expect(lastValue().messages[0].order.product_items).toEqual([
      { product_retailer_id: 'sku-a', quantity: 2, item_price: 149.5, currency: 'INR' },
      { product_retailer_id: 'मसाला:01', quantity: 1, item_price: 7, currency: 'INR' },
    ]);
    await run(stateFile, 'payment', 'captured', '--reference', 'ord-9', '--amount', '1234.5');
    expect(lastValue()).toMatchObject({
      metadata: { phone_number_id: '800000000000111' },
      statuses: [
        { type: 'payment', status: 'captured', payment: { reference_id: 'ord-9', currency: 'INR' } },
      ],
    });
    expect(lastValue().statuses[0].payment.amount).toEqual({ value: 123_450, offset: 100 });
    await run(stateFile, 'payment', 'refund', '--refund', '0.05');
    expect(lastValue().statuses[0].payment.refunds[0].amount.value).toBe(5);
  });

  test('status reports on a message', async () => {
    const { stateFile, lastValue } = await startStack();
    await run(stateFile, 'status', 'wamid.x', 'failed', '--code', '131047');
    expect(lastValue().statuses).toMatchObject([
      { id: 'wamid.x', status: 'failed', errors: [{ code: 131047 }] },
    ]);
  });

  test('field reports what the catalogue shows for each known field, or a given value', async () => {
    const { stateFile, ingress } = await startStack();
    const lastBody = () => ingress.webhooks.at(-1)?.bytes ?? Buffer.alloc(0);
    for (const field of KNOWN_FIELDS) {
      expect((await run(stateFile, 'field', field, '--phone', '800000000000221')).exitCode).toBe(0);
      const { items, quarantined } = splitUpstreamBody(lastBody());
      expect(quarantined).toEqual([]);
      expect(items).toMatchObject([{ kind: 'upstream', field, wabaId: '900000000000202' }]);
      expect([null, '800000000000221']).toContain(items[0]?.phoneNumberId);
      const reportedMs = items[0]?.kind === 'upstream' ? items[0].reportedAt?.getTime() : 0;
      expect(reportedMs).toBeGreaterThan(Date.now() - 60_000);
    }
    await run(stateFile, 'field', 'some_field', '{"a":1}');
    expect(JSON.parse(lastBody().toString()).entry[0].changes).toEqual([
      { field: 'some_field', value: { a: 1 } },
    ]);
    expect((await run(stateFile, 'field', 'some_field')).error).toContain('Give a value of some_field.');
    expect((await run(stateFile, 'field', 'some_field', '{')).error).toContain('not JSON');
  });

  test('inbound sends any type with given members', async () => {
    const { stateFile, lastValue } = await startStack();
    await run(stateFile, 'inbound', 'interactive', '{"interactiveType":"list_reply","title":"Two"}');
    expect(lastValue().messages[0].interactive.list_reply.title).toBe('Two');
  });

  test('fixture and raw send the exact bytes of a file; raw may sign wrongly', async () => {
    const { stateFile, folder, ingress } = await startStack();
    const json = join(folder, 'body.json');
    await writeFile(json, '{"a":\n 1e400}');
    expect((await run(stateFile, 'fixture', json)).exitCode).toBe(0);
    expect(ingress.webhooks.at(-1)?.bytes.toString()).toBe('{"a":\n 1e400}');
    const binary = join(folder, 'body.bin');
    await writeFile(binary, Buffer.from([0, 255, 128]));
    expect((await run(stateFile, 'fixture', binary)).error).toContain('is not JSON');
    await run(stateFile, 'raw', binary, '--signature', 'missing');
    expect(ingress.webhooks.at(-1)?.bytes).toEqual(Buffer.from([0, 255, 128]));
    expect(ingress.webhooks.at(-1)?.headers['x-hub-signature-256']).toBeUndefined();
  });

  test('verify does the handshake', async () => {
    const { stateFile } = await startStack();
    expect((await run(stateFile, 'verify')).out).toContain('verified: answered 200');
  });

  test('fault adds, lists and clears', async () => {
    const { stateFile, url } = await startStack();
    await run(stateFile, 'fault', 'add', 'media_lookup', 'status', '--status', '500', '--times', '1');
    expect((await run(stateFile, 'fault', 'list')).out).toContain('"kind":"status"');
    expect((await graph(`${url}/v26.0/600000000000001`)).status).toBe(500);
    expect((await run(stateFile, 'fault', 'clear')).out).toBe('faults cleared: 1\n');
    expect((await run(stateFile, 'fault', 'list')).out).toBe('no faults\n');
  });
});

describe('failures', () => {
  test('say to start the stack when there is no state file, a broken one, or nothing answers', async () => {
    const folder = await temporaryFolder();
    const stateFile = join(folder, 'embedded.json');
    const outcomes = [await run(stateFile, 'message', 'hello')];
    for (const content of [
      '',
      '{',
      'null',
      '{}',
      '{"sandboxUrl":7}',
      '{"sandboxUrl":"http://127.0.0.1:1"}',
    ]) {
      await writeFile(stateFile, content);
      outcomes.push(await run(stateFile, 'message', 'hello'));
    }
    for (const { out, error, exitCode } of outcomes) {
      expect(out).toBe('');
      expect(error).toMatch(/^error: .*run npm start first\.\n$/);
      expect(exitCode).toBe(1);
    }
  });

  test('are one JSON object with --json', async () => {
    const { out, exitCode } = await run(join(await temporaryFolder(), 'none'), 'message', 'hello', '--json');
    expect(JSON.parse(out).error.code).toBe('not_running');
    expect(exitCode).toBe(1);
  });

  test('of the ingress are shown and counted', async () => {
    const { stateFile, ingress } = await startStack();
    ingress.statuses.push(503);
    const { out, exitCode } = await run(stateFile, 'message', 'hello');
    expect(out).toContain('NOT accepted');
    expect(out).toContain('503');
    expect(exitCode).toBe(1);
  });

  test('of files and numbers name what is wrong', async () => {
    const { stateFile, folder } = await startStack();
    expect((await run(stateFile, 'video', join(folder, 'none.mp4'))).error).toContain('none.mp4 (ENOENT)');
    await writeFile(join(folder, 'empty.mp4'), '');
    expect((await run(stateFile, 'video', join(folder, 'empty.mp4'))).error).toContain('is empty');
    expect((await run(stateFile, 'message', 'x', '--phone', '1')).error).toContain('No phone number 1');
    expect((await run(stateFile, 'inbound', 'text', '[]')).error).toContain('not a JSON object');
  });

  test('in production mode refuse every command', async () => {
    const { stateFile, ingress } = await startStack();
    const before = process.env.HELIOGRAPH_MODE;
    process.env.HELIOGRAPH_MODE = 'production';
    try {
      for (const args of [
        ['message', 'x'],
        ['receive', '--port', '0'],
        ['serve', '--ingress-url', 'http://127.0.0.1:1'],
      ]) {
        const { error, exitCode } = await run(stateFile, ...args);
        expect(error).toContain('HELIOGRAPH_MODE=production');
        expect(exitCode).toBe(1);
      }
    } finally {
      if (before === undefined) {
        delete process.env.HELIOGRAPH_MODE;
      } else {
        process.env.HELIOGRAPH_MODE = before;
      }
    }
    expect(ingress.webhooks).toHaveLength(0);
  });
});

describe('help', () => {
  function leaves(command: Command): Command[] {
    return command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
  }

  test('of every command has a description and an example', () => {
    const all = leaves(createSandboxCommand());
    expect(all.length).toBeGreaterThan(14);
    for (const command of all) {
      let help = '';
      command.configureOutput({ writeOut: (text) => (help += text) });
      command.outputHelp();
      expect(command.description()).not.toBe('');
      expect(help).toContain(`Example:\n  npm run sandbox -- `);
      expect(help).toContain('--json');
    }
  });
});
