import { readFile } from 'node:fs/promises';

/** A command that could not do its work; the message tells the developer what to do. */
export class SandboxCommandError extends Error {
  override name = 'SandboxCommandError';
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Calls the control API of the running stand-in platform. */
export type SandboxClient = {
  post: (path: string, body: object) => Promise<Record<string, unknown>>;
  postBytes: (path: string, bytes: Buffer, contentType: string) => Promise<Record<string, unknown>>;
  get: (path: string) => Promise<Record<string, unknown>>;
  delete: (path: string) => Promise<Record<string, unknown>>;
};

const TIMEOUT_MS = 60_000;

async function sandboxUrlIn(stateFile: string): Promise<string> {
  let text: string;
  try {
    text = await readFile(stateFile, 'utf8');
  } catch (error) {
    const message = `Heliograph is not running here (no ${stateFile}; give the --data-dir of npm start if it has one): run npm start first.`;
    throw new SandboxCommandError('not_running', message, { cause: error });
  }
  try {
    const state: { sandboxUrl?: unknown } | null = JSON.parse(text);
    if (typeof state?.sandboxUrl === 'string' && URL.canParse(state.sandboxUrl)) {
      return state.sandboxUrl;
    }
  } catch {
    // A half-written file is as good as one without the address.
  }
  throw new SandboxCommandError('not_running', `${stateFile} names no sandboxUrl: run npm start first.`);
}

async function readAnswer(response: Response): Promise<Record<string, unknown>> {
  const text = await response.text();
  let answer: { error?: { code?: string; message?: string } };
  try {
    answer = JSON.parse(text);
  } catch (error) {
    const message = `The sandbox answered ${response.status} with something that is not JSON.`;
    throw new SandboxCommandError('unexpected_answer', message, { cause: error });
  }
  if (!response.ok) {
    throw new SandboxCommandError(
      answer.error?.code ?? 'refused',
      answer.error?.message ?? text.slice(0, 200),
    );
  }
  return answer;
}

/**
 * Creates a client for the given address, or for the one in the state file of the embedded stack.
 * Its calls throw SandboxCommandError.
 */
export async function createSandboxClient(options: {
  url?: string;
  stateFile: string;
}): Promise<SandboxClient> {
  const baseUrl = options.url ?? (await sandboxUrlIn(options.stateFile));
  const call = async (path: string, init: RequestInit): Promise<Record<string, unknown>> => {
    let response: Response;
    try {
      response = await fetch(new URL(path, baseUrl), { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
    } catch (error) {
      const message = `Nothing answers at ${baseUrl}: run npm start first.`;
      throw new SandboxCommandError('not_running', message, { cause: error });
    }
    return readAnswer(response);
  };
  const send = (path: string, body: Uint8Array<ArrayBuffer>, contentType: string) =>
    call(path, { method: 'POST', headers: { 'content-type': contentType }, body });
  return {
    post: (path, body) => send(path, new Uint8Array(Buffer.from(JSON.stringify(body))), 'application/json'),
    postBytes: (path, bytes, contentType) => send(path, new Uint8Array(bytes), contentType),
    get: (path) => call(path, { method: 'GET' }),
    delete: (path) => call(path, { method: 'DELETE' }),
  };
}
