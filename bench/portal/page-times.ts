import type { FastifyInstance } from 'fastify';
import { percentilesOf } from '../report/percentiles.ts';

/** How long a page took, and how large it is. */
export type PageTimes = { path: string; p50: number; p95: number; bytes: number };

const ORIGIN = 'https://heliograph.example';

/** A browser without a script that is signed in; it keeps its cookies. */
export async function signIn(
  app: FastifyInstance,
  { email, password }: { email: string; password: string },
): Promise<(path: string) => Promise<string>> {
  const cookies = new Map<string, string>();
  const send = async (method: 'GET' | 'POST', url: string, fields: Record<string, string> = {}) => {
    const headers = {
      host: new URL(ORIGIN).host,
      origin: ORIGIN,
      cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      ...(method === 'POST' && { 'content-type': 'application/x-www-form-urlencoded' }),
    };
    const payload = new URLSearchParams(fields).toString();
    const answer = await app.inject({ method, url, headers, ...(method === 'POST' && { payload }) });
    for (const { name, value } of answer.cookies) cookies.set(name, value);
    return answer;
  };
  const form = await send('GET', '/portal/sign-in');
  const csrf = /name="_csrf" value="([^"]+)"/.exec(form.body)?.[1] ?? '';
  const { statusCode } = await send('POST', '/portal/sign-in', {
    _csrf: csrf,
    email,
    password,
    next: '/portal',
  });
  if (statusCode !== 303) throw new Error(`signing in was answered ${statusCode}`);
  return async (path) => {
    const answer = await send('GET', path);
    if (answer.statusCode !== 200) throw new Error(`${path} was answered ${answer.statusCode}`);
    return answer.body;
  };
}

/** Opens each page `rounds` times, all of them in turn, after a few rounds that do not count. */
export async function timePages(
  open: (path: string) => Promise<string>,
  paths: readonly string[],
  rounds: number,
): Promise<PageTimes[]> {
  const times = new Map(paths.map((path) => [path, { ms: [] as number[], bytes: 0 }]));
  for (let round = -5; round < rounds; round += 1) {
    for (const [path, page] of times) {
      const startMs = performance.now();
      const body = await open(path);
      if (round >= 0) page.ms.push(performance.now() - startMs);
      page.bytes = Buffer.byteLength(body);
    }
  }
  return [...times].map(([path, { ms, bytes }]) => {
    const { p50, p95 } = percentilesOf(ms);
    return { path, p50, p95, bytes };
  });
}
