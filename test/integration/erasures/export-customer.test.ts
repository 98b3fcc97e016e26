import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { exportCustomer } from '../../../src/ops/erasures/export-customer.ts';
import { ObjectMissing } from '../../../src/platform/object-store/store-errors.ts';
import { runAdmin } from '../../support/admin-cli.ts';
import { takeIn } from '../../support/take-in.ts';
import {
  bodyOf,
  contactOf,
  type ErasureWorld,
  messageOf,
  person,
  startErasureWorld,
  storeFile,
  WABA,
} from './erasure-world.ts';

const ASHA = person('Asha', '5511987650143');
const MEGABYTE = 1_048_576;

/** A customer with two files, of which the store gives what the test says. */
async function exportWith(world: ErasureWorld, open: (n: number) => Readable): Promise<Readable> {
  const { tools } = world;
  const image = (n: number) => ({ type: 'image', image: { id: `${n}`, mime_type: 'image/jpeg' } });
  const messages = [0, 1].map((n) => messageOf(ASHA, n, image(n)));
  await takeIn(world.database, bodyOf([{ contacts: [contactOf(ASHA)], messages }]));
  for (const n of [0, 1]) await storeFile(world, ASHA.wamid(n), Buffer.from('file'));
  let opened = 0;
  const getRange = async () => {
    opened += 1;
    return open(opened);
  };
  const { archive } = await exportCustomer({ ...tools, objectStore: { getRange } }, WABA, {
    phone: ASHA.waId,
  });
  return archive;
}

/** Random bytes, which a zip does not make fewer, as long as somebody reads. */
function endless(made: { bytes: number }): Readable {
  return new Readable({
    read() {
      made.bytes += 65_536;
      this.push(randomBytes(65_536));
    },
  });
}

test('an archive is made as fast as it is read, whatever the size of its files, and lets go of them when its reader leaves', async () => {
  const made = { bytes: 0 };
  const files: Readable[] = [];
  const archive = await exportWith(await startErasureWorld(), () => {
    const file = endless(made);
    files.push(file);
    return file;
  });
  let readBytes = 0;
  for await (const chunk of archive.iterator({ destroyOnReturn: false })) {
    readBytes += (chunk as Buffer).length;
    if (readBytes > 20 * MEGABYTE) break;
  }
  const atPause = made.bytes;
  for (let n = 0; n < 200; n += 1) await turn();
  expect(made.bytes).toBeGreaterThan(20 * MEGABYTE);
  expect(made.bytes - readBytes).toBeLessThan(2 * MEGABYTE);
  expect(made.bytes - atPause).toBeLessThan(MEGABYTE);
  archive.destroy();
  await expect.poll(() => files.map(({ destroyed }) => destroyed)).toEqual([true]);
});

test('a file that is lost costs no other; one that breaks off breaks the archive, so that it does not look whole', async () => {
  const world = await startErasureWorld();
  const lost = await exportWith(world, (n) => {
    if (n === 1) throw new ObjectMissing('lost');
    return Readable.from([Buffer.from('the second file')]);
  });
  const whole = Buffer.concat(await lost.toArray());
  const endOfArchive = Buffer.from('504b0506', 'hex');
  const entries = whole.readUInt16LE(whole.lastIndexOf(endOfArchive) + 10);
  expect(entries).toBe(5);
  const broken = await exportWith(world, () => {
    const half = new Readable({ read() {} });
    half.push('half of the file');
    setImmediate(() => half.destroy(new Error('the store went away')));
    return half;
  });
  const received: Buffer[] = [];
  const reading = (async () => {
    for await (const chunk of broken) received.push(chunk as Buffer);
  })();
  await expect(reading).rejects.toThrow('the store went away');
  expect(Buffer.concat(received).includes(endOfArchive)).toBe(false);
});

test('in a container the archive goes to standard output, byte for byte', async () => {
  const world = await startErasureWorld();
  await takeIn(world.database, bodyOf([{ contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 0)] }]));
  const command = [
    'export',
    'customer',
    '--waba',
    WABA,
    '--phone',
    `\u202a00${ASHA.waId}\u202c`,
    '--output',
    '-',
  ];
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ['src/main.ts', 'admin', ...command],
    {
      env: { PATH: process.env.PATH ?? '', ...world.settings },
      encoding: 'buffer',
    },
  );
  expect([stderr.toString(), stdout.subarray(0, 4).toString('latin1')]).toEqual(['', 'PK\u0003\u0004']);
  const unreadable = [
    'export',
    'customer',
    '--waba',
    WABA,
    '--phone',
    `${ASHA.waId}.0`,
    '--output',
    '/nowhere/x',
  ];
  expect(await runAdmin(world.settings, unreadable)).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('--phone takes a phone number with its country code'),
  });
  const nowhere = await runAdmin(world.settings, [...command.slice(0, -1), '/nowhere/customer.zip']);
  expect(nowhere).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('(ENOENT); - writes standard output'),
  });
  // The end of a zip archive says where its directory begins; a byte more or less before it shows.
  const end = stdout.length - 22;
  expect(stdout.readUInt32LE(end)).toBe(0x06054b50);
  expect(stdout.readUInt32LE(end + 16) + stdout.readUInt32LE(end + 12)).toBe(end);
});
