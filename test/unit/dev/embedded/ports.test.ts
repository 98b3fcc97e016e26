import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { assertPortsFree, findFreePorts, portVariables, readPorts } from '../../../../dev/embedded/ports.ts';
import { listenInTest } from '../../../support/listen.ts';

describe('ports of the embedded stack', () => {
  test('without settings they are the documented ones', () => {
    expect(readPorts({})).toEqual({
      api: 8080,
      https: 8443,
      temporal: 7233,
      temporalUi: 8233,
      postgres: 5433,
      minio: 9000,
      minioConsole: 9001,
      sandbox: 8090,
      receiver: 8091,
      workerHealth: 8092,
      apiMetrics: 8093,
    });
  });

  test('a base moves all of them, and a single setting goes over the base', () => {
    const ports = readPorts({
      HELIOGRAPH_EMBEDDED_PORT_BASE: '20000',
      HELIOGRAPH_EMBEDDED_POSTGRES_PORT: '30000',
    });
    expect(ports).toMatchObject({
      api: 20000,
      https: 20001,
      temporal: 20002,
      postgres: 30000,
      receiver: 20008,
    });
    expect(new Set(Object.values(ports)).size).toBe(11);
  });

  test('the variables for a child process give it the same ports', () => {
    const ports = readPorts({ HELIOGRAPH_EMBEDDED_PORT_BASE: '20000' });
    expect(readPorts(portVariables(ports))).toEqual(ports);
  });

  test.each(['0', '65536', '-1', '80a', '1e3', '8080.5', '\u0000'])('%j is refused by name', (value) => {
    expect(() => readPorts({ HELIOGRAPH_EMBEDDED_API_PORT: value })).toThrow(
      'HELIOGRAPH_EMBEDDED_API_PORT must be a port from 1 to 65535',
    );
  });

  test('a base that leaves no room is refused', () => {
    expect(() => readPorts({ HELIOGRAPH_EMBEDDED_PORT_BASE: '65530' })).toThrow(/too high/);
  });

  test('one port for two parts is refused with the names of both', () => {
    expect(() => readPorts({ HELIOGRAPH_EMBEDDED_MINIO_PORT: '8080' })).toThrow(
      /the API and MinIO are both set to port 8080/,
    );
  });

  test('a taken port is reported with the port, the part and the variable that moves it', async () => {
    const server = createServer();
    const port = await listenInTest(server);
    const [free = 0] = await findFreePorts(1);
    const error = await assertPortsFree({ temporal: port, minio: free }).catch((reason: Error) => reason);
    expect(String(error)).toContain(`Port ${port} for Temporal is taken by another program`);
    expect(String(error)).toContain('HELIOGRAPH_EMBEDDED_TEMPORAL_PORT');
    expect(String(error)).not.toContain('MinIO');
  });

  test('free ports pass, and are all different', async () => {
    const [api = 0, minio = 0, postgres = 0] = await findFreePorts(3);
    expect(new Set([api, minio, postgres]).size).toBe(3);
    await expect(assertPortsFree({ api, minio, postgres })).resolves.toBeUndefined();
  });
});
