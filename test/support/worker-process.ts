import { type ServerProcess, startServerProcess } from './server-process.ts';

export type WorkerProcess = Omit<ServerProcess, 'printed'> & { ready(): Promise<void> };

export function startWorkerProcess(settings: Record<string, string>): WorkerProcess {
  const { printed, ...worker } = startServerProcess('worker', settings);
  return { ...worker, ready: async () => void (await printed(/worker ready/)) };
}
