import { createSocket, type RemoteInfo } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { makeHostResolver } from '../../../../src/platform/http/host-resolver.ts';

describe('makeHostResolver', () => {
  const resolve = makeHostResolver();

  test('knows localhost without DNS', async () => {
    expect(await resolve('localhost')).toContain('127.0.0.1');
    expect(await resolve('LOCALHOST.')).toContain('127.0.0.1');
  });

  test.each(['does-not-exist.invalid', 'a..b', 'x'.repeat(64)])(
    'rejects %j, which has no address',
    async (name) => {
      await expect(resolve(name)).rejects.toThrow();
    },
  );

  test('gives every IPv4 and IPv6 address, IPv4 first', async () => {
    const server = await nameServer((type) => (type === AAAA ? IPV6_RECORD : IPV4_RECORD));
    const addresses = await makeHostResolver({ servers: [server] })('receiver.example');
    expect(addresses).toEqual(['93.184.215.14', '2606:4700::1']);
  });

  test('takes the one family that a name has', async () => {
    const server = await nameServer((type) => (type === AAAA ? null : IPV4_RECORD));
    expect(await makeHostResolver({ servers: [server] })('receiver.example')).toEqual(['93.184.215.14']);
  });

  test('a name server that never answers is given up, and holds up no thread that other names need', async () => {
    const stuckResolve = makeHostResolver({ servers: [await nameServer(() => undefined)] });
    const stuck = Array.from({ length: 16 }, (_, index) => stuckResolve(`name${index}.example`));
    const settled = Promise.allSettled(stuck);
    const first = await Promise.race([
      lookup('localhost'),
      ...stuck.map((name) => name.catch(() => 'given up')),
    ]);
    expect(first).toMatchObject({ address: expect.any(String) });
    const outcomes = new Set((await settled).map(({ status }) => status));
    expect(outcomes).toEqual(new Set(['rejected']));
  });
});

const AAAA = 28;
const IPV4_RECORD = Buffer.from('c00c0001000100000001' + '0004' + '5db8d70e', 'hex');
const IPV6_RECORD = Buffer.from('c00c001c000100000001' + '0010' + '26064700000000000000000000000001', 'hex');

/** A DNS server: `answer` gives the record for a query type, null for none, undefined for silence. */
async function nameServer(answer: (type: number) => Buffer | null | undefined): Promise<string> {
  const socket = createSocket('udp4');
  socket.on('message', (query: Buffer, from: RemoteInfo) => {
    const nameEnd = query.indexOf(0, 12);
    const record = answer(query.readUInt16BE(nameEnd + 1));
    if (record === undefined) return;
    const header = Buffer.from('0000818000010000' + '00000000', 'hex');
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(record === null ? 0 : 1, 6);
    socket.send(
      Buffer.concat([header, query.subarray(12, nameEnd + 5), record ?? Buffer.alloc(0)]),
      from.port,
      from.address,
    );
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise<void>((resolve) => socket.close(() => resolve())));
  return `127.0.0.1:${socket.address().port}`;
}
