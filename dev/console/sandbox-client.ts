import { ApiError } from '../../src/api/errors/api-error.ts';

/** One message of a chat, as the stand-in platform keeps it. */
export type ChatEntry = {
  n: number;
  at: string;
  side: 'customer' | 'business';
  /** The wamid; the reference of a payment. */
  id: string;
  phoneNumberId: string;
  customer: string;
  customerName: string | null;
  message: Record<string, unknown>;
  states: { state: string; at: string }[];
};

/** A webhook as the sample tenant received it. */
type ReceivedWebhook = {
  n: number;
  /** The WABA that it is for. */
  name: string;
  receivedAt: string;
  answeredAt: string | null;
  webhookId: string;
  headers: Record<string, string>;
  verified: boolean;
  duplicate: boolean;
  /** What the sample tenant answered; null as long as it did not. */
  status: number | null;
  /** How it was told to behave. */
  mode: string | null;
};

/** One in a list. */
export type ListedWebhook = ReceivedWebhook & {
  eventType: string;
  eventId: string;
  summary: string;
  /** Of `status` and `payment` events: the state that they report. */
  state: string | null;
};

/** One with its body. */
export type WholeWebhook = ReceivedWebhook & { body: string };

/** How many webhooks the sample tenant received of one WABA, and how it answered. */
export type ReceivedCounts = { received: number; verified: number; duplicates: number; failed: number };

export type Customer = { waId: string; name: string };

/** How the sample tenant answers; of all WABAs without a name. */
export type Behaviour = {
  mode: string;
  name?: string;
  status?: number;
  retryAfter?: number;
  delayMs?: number;
  times?: number;
};

/** The two servers of the sandbox, on this machine. All calls throw ApiError 503 when one is away. */
export type SandboxClient = ReturnType<typeof createSandboxClient>;

/** What one of the servers answers to a request that it cannot carry out; for the developer to read. */
export class SandboxRefusedError extends Error {
  override name = 'SandboxRefusedError';
}

const TIMEOUT_MS = 10_000;

/** Calls to the stand-in platform at `controlUrl` and to the sample tenant at `receiverUrl`. */
export function createSandboxClient({
  controlUrl,
  receiverUrl,
}: {
  controlUrl: string;
  receiverUrl: string;
}) {
  const control = <Answer>(path: string, init?: RequestInit) => call<Answer>(`${controlUrl}${path}`, init);
  const receiver = <Answer>(path: string, init?: RequestInit) => call<Answer>(`${receiverUrl}${path}`, init);
  return {
    chat: async (wabaId: string): Promise<ChatEntry[]> =>
      (await control<{ data: ChatEntry[] }>(`/sandbox/chat?${new URLSearchParams({ wabaId, limit: '300' })}`))
        .data,
    customers: async (wabaId: string): Promise<Customer[]> =>
      (await control<{ data: Customer[] }>(`/sandbox/customers?${new URLSearchParams({ wabaId })}`)).data,
    /** What a customer does: a message or a payment. */
    send: async (inbound: Record<string, unknown>): Promise<{ id: string; status: number }> =>
      await control('/sandbox/inbound', json(inbound)),
    /** What the platform reports in another webhook field than messages. */
    sendField: async (change: Record<string, unknown>): Promise<{ status: number }> =>
      await control('/sandbox/fields', json(change)),
    storeMedia: async (file: { bytes: Uint8Array; mimeType: string; filename: string }): Promise<string> => {
      const path = `/sandbox/media?${new URLSearchParams({ filename: file.filename })}`;
      const headers = { 'content-type': file.mimeType };
      const body = new Uint8Array(file.bytes);
      return (await control<{ id: string }>(path, { method: 'POST', headers, body })).id;
    },
    media: async (id: string): Promise<{ bytes: Buffer; mimeType: string }> => {
      const response = await answerOf(`${controlUrl}/sandbox/media/${encodeURIComponent(id)}`);
      const mimeType = response.headers.get('content-type') ?? 'application/octet-stream';
      return { bytes: Buffer.from(await response.arrayBuffer()), mimeType };
    },
    received: async (wabaId: string, limit: number) =>
      await receiver<{ data: ListedWebhook[]; counts: ReceivedCounts }>(
        `/received/newest?${new URLSearchParams({ name: wabaId, limit: String(limit) })}`,
      ),
    webhook: async (n: number) => await receiver<WholeWebhook>(`/received/${n}`),
    behaviours: async () => (await receiver<{ behaviours: Behaviour[] }>('/control/behaviour')).behaviours,
    setBehaviour: async (behaviour: Behaviour) => {
      await receiver('/control/behaviour', json(behaviour));
    },
  };
}

function json(body: unknown): RequestInit {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

async function call<Answer>(url: string, init?: RequestInit): Promise<Answer> {
  return (await (await answerOf(url, init)).json()) as Answer;
}

async function answerOf(url: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch (error) {
    const message = 'The sandbox does not answer. It runs together with npm start.';
    throw new ApiError('service_unavailable', { message, cause: error });
  }
  if (response.ok) return response;
  const answer = (await response.json().catch(() => ({}))) as { error?: { message?: string } };
  throw new SandboxRefusedError(answer.error?.message ?? `The sandbox answered ${response.status}.`);
}
