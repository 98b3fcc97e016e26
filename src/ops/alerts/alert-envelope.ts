import { USER_AGENT } from '../../platform/http/user-agent.ts';

export type EndpointNotice = 'failing' | 'disabled' | 'recovered' | 'deliveries_failed' | 'backlog';

type WabaNotice =
  | 'api_key.expiring'
  | 'client_certificate.expiring'
  | 'access_token.refused'
  | 'number.restricted'
  | 'account.restricted'
  | 'template.stopped'
  | 'broadcast.paused'
  | 'waba.silent'
  | 'number.shared'
  | 'payloads.quarantined';

export type NoticeKind = EndpointNotice | WabaNotice;

/** Whether its condition began, lasts for another day, or is over. */
export type NoticeState = 'opened' | 'lasting' | 'resolved';

/** The content of an alert. It has no `eventType`, so that it cannot be taken for an event. */
export type AlertEnvelope = {
  alertId: string;
  alert: NoticeKind;
  /** Absent where the alert is sent once, when it happens. */
  state?: NoticeState | undefined;
  occurredAt: Date;
  /** A whole number, as text because PostgreSQL's bigint comes as text. */
  userId: string;
  wabaId: string;
  /** Absent where it is about no endpoint. */
  endpoint?: { id: string; url: string; description: string; mode: string; modeReason: string | null };
  reason: string | null;
  /** Deliveries that wait for the endpoint, at most MAX_WAITING. */
  waiting?: number;
  details: Readonly<Record<string, string | number | boolean | null>>;
};

/** Counting stops here: an alert must not cost a look at a million rows. */
export const MAX_WAITING = 10_000;

export function isAboutEndpoint(alert: NoticeKind): boolean {
  return !alert.includes('.');
}

export function alertName(alert: NoticeKind): string {
  return isAboutEndpoint(alert) ? `endpoint.${alert}` : alert;
}

/** The body of an alert. Throws RangeError when occurredAt is no date. */
export function serializeAlert(alert: AlertEnvelope): string {
  return JSON.stringify({
    alertId: alert.alertId,
    alert: alertName(alert.alert),
    state: alert.state,
    occurredAt: alert.occurredAt.toISOString(),
    userId: Number(alert.userId),
    wabaId: alert.wabaId,
    endpoint: alert.endpoint,
    reason: alert.reason,
    waiting: alert.waiting,
    details: alert.details,
  });
}

/** The headers of one attempt to send an alert; none of them is a header of an event, except what verifiers need. */
export function alertHeaders(input: {
  alertId: string;
  alert: NoticeKind;
  timestampSeconds: number;
  /** The Standard Webhooks list. */
  signature: string;
}): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'X-Service-Alert': alertName(input.alert),
    'X-Service-Signature': input.signature,
    'webhook-id': input.alertId,
    'webhook-timestamp': String(input.timestampSeconds),
    'webhook-signature': input.signature,
    'Idempotency-Key': input.alertId,
  };
}
