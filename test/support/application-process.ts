import { type ServerProcess, startServerProcess } from './server-process.ts';

const ADDRESS = /api listens at (http:\/\/[\d.]+:\d+)/;

export type ApiProcess = Pick<ServerProcess, 'kill'> & { url: string };

/** On a port of its own unless one is given; resolves when it listens. */
export async function startApiProcess(settings: Record<string, string>, port = '0'): Promise<ApiProcess> {
  const { printed, kill } = startServerProcess('api', { ...settings, HELIOGRAPH_API_PORT: port });
  const [, url = ''] = await printed(ADDRESS);
  return { url, kill };
}
