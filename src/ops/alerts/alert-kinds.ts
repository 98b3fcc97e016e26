import { DESTINATION_SET } from '../../platform/audit/audit.ts';
import { ALL, type QuestionId } from '../health/questions.ts';
import type { NoticeKind, NoticeState } from './alert-envelope.ts';

export const ALERT_KINDS = [
  'endpoint_failing',
  'endpoint_disabled',
  'deliveries_failed',
  'endpoint_backlog',
  'api_key_expiring',
  'client_certificate_expiring',
  'url_set_by_key',
  'access_token_refused',
  'number_restricted',
  'account_restricted',
  'template_stopped',
  'broadcast_paused',
  'number_shared',
  'waba_silent',
  'payloads_quarantined',
  'account_unclaimed',
  'intake_backlog',
  'intake_failed',
  'delivery_backlog',
  'egress_proxy_down',
  'operations_hook_failing',
  'quota_nearly_used',
  'mail_failed',
  'key_request_pending',
] as const;

const minutesOf = (id: QuestionId) => (ALL[id].limit?.down ?? 0) / 60;

/** An alert opens when the oldest has waited for longer. */
export const LATE_MINUTES = {
  endpoint: 15,
  deliveries: minutesOf('oldestDue'),
  intake: minutesOf('oldestBody'),
};

export type AlertKind = (typeof ALERT_KINDS)[number];

type KindDescription = {
  title: string;
  audience: 'tenant' | 'operator' | 'both';
  /** Its name at operations URLs; absent: it is not sent there. */
  notice?: NoticeKind;
  /** Nothing is wrong and nothing waits: it is to be known. It raises no alarm. */
  isNotice?: true;
  /** A developer causes it all day. */
  isQuietInDevelopment?: true;
  /** Its details are for the operator's program too, with the kind. */
  hasDetailsInFeed?: true;
  /** Of which of its states tenants are notified there; absent: all. Changes and failures of endpoints are notified one by one. */
  noticeStates?: readonly NoticeState[];
  /** What it means, and then what to do: the runbook of the portal and of docs/operators/runbooks.md. */
  meaning: string;
  steps: readonly string[];
};

export const KINDS: Readonly<Record<AlertKind, KindDescription>> = {
  endpoint_failing: {
    title: 'Endpoint failing',
    audience: 'tenant',
    notice: 'failing',
    noticeStates: ['lasting'],
    meaning:
      'Most or all attempts at a webhook endpoint fail. Its deliveries are kept: retried by the schedule, or, while the endpoint is `probing`, held back while a probe tests it.',
    steps: [
      'Open the endpoint and look at the last attempts: status code, error and response of the server.',
      'The tenant fixes the server. A probe, the next event or the next retry notices it, and the pending deliveries are sent in order. "Retry now" on the page of the endpoint does not wait for that.',
      'If it takes longer, pause the endpoint: nothing is tried and nothing is lost.',
    ],
  },
  endpoint_disabled: {
    title: 'Endpoint disabled',
    audience: 'tenant',
    notice: 'disabled',
    noticeStates: ['lasting'],
    meaning:
      'A webhook endpoint was switched off because every attempt failed for days, or because it returned 410 Gone. Its events are kept.',
    steps: [
      'The tenant fixes the server, or changes the URL of the endpoint.',
      'Send a test event; it goes out although the endpoint is disabled.',
      'Enable the endpoint and choose whether to send or drop its pending deliveries.',
    ],
  },
  deliveries_failed: {
    title: 'Deliveries failed',
    audience: 'tenant',
    notice: 'deliveries_failed',
    noticeStates: [],
    meaning: 'Deliveries used up all their attempts in the last 24 hours and are not retried automatically.',
    steps: [
      'Filter the deliveries by this endpoint and the state "failed", and read the last error.',
      'The tenant fixes the cause at the server.',
      'Start a replay of the failed deliveries of this time.',
    ],
  },
  endpoint_backlog: {
    title: 'Endpoint too slow',
    audience: 'tenant',
    notice: 'backlog',
    meaning: `A webhook endpoint accepts its deliveries, but more slowly than events come: the oldest has been due for over ${LATE_MINUTES.endpoint} minutes.`,
    steps: [
      'Look at the response times of the endpoint. A server should respond at once and do its work later.',
      'Raise the limits of the endpoint (attempts at a time, attempts per second) if you set them.',
      'Let the endpoint receive only the event types that you need.',
    ],
  },
  api_key_expiring: {
    title: 'API key expires soon',
    audience: 'tenant',
    notice: 'api_key.expiring',
    meaning:
      'An API key expires within 14 days, or expired in the last 14. From then on every request with it returns 401.',
    steps: [
      'Make a new key, or ask for one that replaces it, and give it to the programs that use the old one.',
      'The list of API keys shows when the old key was last used.',
      'Revoke the old key once nothing uses it.',
    ],
  },
  client_certificate_expiring: {
    title: 'Client certificate expires soon',
    audience: 'tenant',
    notice: 'client_certificate.expiring',
    meaning:
      'The certificate that Heliograph shows to the server of an endpoint expires within 14 days, or has expired. The server then refuses its connections.',
    steps: [
      'Ask the authority of the current certificate to issue a new one.',
      'Set it on the page of the endpoint, under "Client certificate". It is used from the next attempt on.',
      'If the server no longer requires a certificate, remove it there.',
    ],
  },
  url_set_by_key: {
    title: 'URL set by an API key',
    isNotice: true,
    isQuietInDevelopment: true,
    audience: 'tenant',
    meaning:
      'In the last 7 days an API key added a webhook endpoint, changed the URL of one, or set the operations URL: events or alerts of the WABA go there. Or it set where flows send the input of customers, or the key that encrypts this input.',
    steps: [
      'Check that one of your programs did it, and that the server is yours.',
      'If not, revoke the API key at once, then delete the endpoint or change its URL. Of a flow, set its address or the public key of the number again.',
      'Read in the audit log from which address the key was used, and its other changes.',
    ],
  },
  access_token_refused: {
    title: 'Access token refused',
    audience: 'both',
    notice: 'access_token.refused',
    meaning:
      'The upstream platform refuses the access token of a WABA (code 190 or status 401), or there is none that can be used. Messages cannot be sent and media cannot be fetched; webhooks still arrive.',
    steps: [
      'Make a new permanent token for the system user of the upstream app, with the permissions whatsapp_business_messaging and whatsapp_business_management.',
      'An operator stores it on the page of the WABA or with "admin waba set-token". It is tried at once, and the alert ends when upstream accepts it.',
      'Media that waits is fetched then, for up to 7 days after it came. Messages that failed have to be sent again.',
    ],
  },
  number_restricted: {
    title: 'Number restricted',
    audience: 'both',
    notice: 'number.restricted',
    meaning:
      'The upstream platform flagged a phone number because its quality is low, or lowered its messaging limit. Customers blocked or reported the number.',
    steps: [
      'Stop campaigns from this number, and write only to customers who expect it.',
      'Read in the WhatsApp Manager of the business which messages were reported, and change those templates.',
      'A flagged number whose quality stays low gets a lower limit. The alert ends when upstream removes the flag; a lower limit is reported for 7 days.',
    ],
  },
  account_restricted: {
    title: 'Account restricted',
    audience: 'both',
    notice: 'account.restricted',
    meaning:
      'The upstream platform reports that the account violated a policy, or is restricted, banned or deleted, or it does not deliver messages of a number because the payment method of the account is missing or has a problem (error 131042).',
    steps: [
      'Open the Business Support Home of the business at the upstream platform: it names the policy and the date.',
      'Fix the violation, or ask for a review there if it is a mistake.',
      'Payment: add a valid payment method to the WhatsApp account in the billing settings of the business. Send the failed messages again. The alert ends a day after the last such failure.',
      'A violation or restriction is reported for 7 days, a ban until upstream lifts it.',
    ],
  },
  template_stopped: {
    title: 'Template needs attention',
    audience: 'both',
    notice: 'template.stopped',
    meaning:
      'The upstream platform rejected, paused or disabled a message template, gave it another category, or its quality dropped. Messages with a stopped template fail.',
    steps: [
      'Rejected: read the reason in the WhatsApp Manager, correct the template and submit it again, or ask for a review.',
      'Paused or low in quality: customers block it or do not read it. Send it to fewer people, and change its text before the pause ends.',
      'Another category: it costs as much as its category. Ask for a review in the WhatsApp Manager if the old one was right.',
      'The alert ends when upstream approves the template or its quality is high again. A category is reported for 7 days.',
    ],
  },
  broadcast_paused: {
    title: 'Broadcast paused itself',
    audience: 'both',
    notice: 'broadcast.paused',
    meaning:
      'A broadcast stopped sending: upstream limits the number, restricts a country or paused the template, the account is restricted, the access token is refused, or more than 40 of its last 200 messages failed. Its other recipients wait.',
    steps: [
      'Read the reason, and the errors of the failed recipients, on the page of the broadcast.',
      'Remove the cause: wait until upstream lifts the limit, replace the template, or have the access token replaced.',
      'Resume the broadcast. It continues where it paused, and the failed recipients stay failed. Or cancel it.',
      'The alert ends when the broadcast is resumed or cancelled.',
    ],
  },
  number_shared: {
    title: 'Another responder has conversations',
    isNotice: true,
    isQuietInDevelopment: true,
    audience: 'both',
    notice: 'number.shared',
    meaning:
      'For a number to which customers wrote in the last 7 days, the upstream platform sent only copies of messages (standby) in the last 24 hours: another responder, such as an AI agent of the business or a further partner, has those conversations. They are shown with the origin `other_responder` and give no `message` events.',
    steps: [
      'Ask the business whether this is meant: it chooses in Meta Business Suite who gets which conversations.',
      'If the conversations are to come here, make your app the responder there. The member `thread` of a conversation says who has it.',
      'If it is meant, endpoints that ask for `upstream.standby` and `upstream.messaging_handovers` follow the other responders.',
    ],
  },
  waba_silent: {
    title: 'WABA silent',
    audience: 'both',
    notice: 'waba.silent',
    meaning:
      'No webhooks came from the upstream platform for a WABA, although in each of the last four weeks there was traffic in the same hours. A public holiday can be the reason too.',
    steps: [
      'Send a message to a number of the WABA from a phone. If it arrives, all is well and the alert ends by itself.',
      'If not, look at the upstream app: is it subscribed to the WABA, is the webhook address right and active, is the field "messages" subscribed?',
      'Look at the state of the number and of the business at the upstream platform: it may be restricted or banned.',
    ],
  },
  payloads_quarantined: {
    title: 'Payloads in quarantine',
    audience: 'both',
    notice: 'payloads.quarantined',
    meaning:
      'Parts of bodies of the upstream platform could not be read, today or yesterday, and were quarantined. They are kept unchanged.',
    steps: [
      'Operators see the reasons under System health and with "admin inbox status".',
      'The reason phone_number_not_of_waba: the number is not of this WABA at the upstream platform.',
      'The reason not_signed_for_waba: an app secret that is bound to WABAs signed for the number of another WABA. Ask the owner of that app why.',
      'Other reasons mostly mean that upstream sends a new type of data: upgrade Heliograph, then run "admin inbox retry" while the bodies are kept.',
    ],
  },
  account_unclaimed: {
    title: 'Account of no tenant',
    isNotice: true,
    isQuietInDevelopment: true,
    audience: 'operator',
    meaning:
      'The upstream platform reported today or yesterday about the account of a customer of yours, such as that it was shared with you or removed, and no tenant has it. The report is kept in quarantine and gave no event.',
    steps: [
      'Find the customer in the WhatsApp Manager by the WABA in the reason. 0 stands for a report that names a phone number only.',
      'If the account is to be used here, add the WABA to a tenant. Then run "admin inbox retry" while the bodies are kept.',
      'If not, nothing has to be done: the alert ends two days after the last report.',
    ],
  },
  intake_backlog: {
    title: 'Intake is behind',
    audience: 'operator',
    meaning: `Bodies of the upstream platform are stored, but the oldest has waited for intake for over ${LATE_MINUTES.intake} minutes.`,
    steps: [
      'Check that a worker runs: System health lists the worker processes.',
      'Check the log of the workers for the loop "intake", and PostgreSQL: locks, disk, connections.',
      'If the workers are busy, start more of them.',
    ],
  },
  intake_failed: {
    title: 'Bodies could not be ingested',
    audience: 'operator',
    meaning:
      'Bodies of the upstream platform could not be stored as events. They are kept until they are ingested.',
    steps: [
      'Read why with "admin inbox status" and in the log of the workers.',
      'Upgrade Heliograph or fix the cause, then run "admin inbox retry".',
    ],
  },
  delivery_backlog: {
    title: 'Deliveries are behind',
    audience: 'operator',
    meaning: `A delivery to an endpoint that works has been due for over ${LATE_MINUTES.deliveries} minutes.`,
    steps: [
      'Check under System health whether one endpoint is slow or all of them wait.',
      'If all wait: check that workers run and that attempts can be recorded (log of the workers, disk of PostgreSQL).',
      'If the workers are busy, start more of them.',
    ],
  },
  egress_proxy_down: {
    title: 'Egress proxy down',
    audience: 'operator',
    meaning:
      'A worker cannot send webhooks, because the egress proxy (`HELIOGRAPH_WEBHOOK_PROXY`) cannot be reached or does not accept its credentials. Deliveries wait and use up no attempts; no endpoint is probed or disabled for it.',
    steps: [
      'Read the reason below, and run "heliograph-server doctor" where the worker runs.',
      'See that the proxy runs and that workers may connect to it; after a change of its password, change the setting and restart.',
      'Nothing has to be sent again: waiting deliveries go out within seconds after the proxy returns.',
    ],
  },
  operations_hook_failing: {
    title: 'Operations hook failing',
    audience: 'operator',
    meaning:
      'A hook of the platform API has not accepted an operation event for 15 minutes, and the events of its tenant wait, or it was disabled because it accepted none for 3 days or returned 410 Gone. Its events wait in their order.',
    steps: [
      'Read the last error with "admin platform get-operations-hook <hookRef>".',
      'Fix the server. The next attempt is made within half an hour; "admin platform test-operations-hook" sends a test event at once.',
      'A disabled hook continues where it stopped after "admin platform put-operations-hook" with "--state enabled". Events older than the audit log are gone: read the feed from its beginning then.',
    ],
  },
  quota_nearly_used: {
    title: 'Message count reached',
    isNotice: true,
    hasDetailsInFeed: true,
    audience: 'operator',
    meaning:
      'A count of messages of a tenant has reached, in this UTC day or month, the threshold that was set for it with the platform API. Nothing is refused because of it.',
    steps: [
      'Open Usage: it shows the counts of all tenants by month.',
      'Inform the tenant, or raise the threshold with "admin platform put-usage-alert".',
      'The alert ends with the day or month.',
    ],
  },
  mail_failed: {
    title: 'E-mail not delivered',
    audience: 'operator',
    meaning: 'In the last 24 hours an e-mail was refused, or the mail server could not be reached for a day.',
    steps: [
      'Read the reason below and in Temporal, under the workflows sendMail.',
      'Try the settings with "admin mail test <address>".',
      'If the address is wrong, invite the person again with the correct one.',
    ],
  },
  key_request_pending: {
    title: 'API key requested',
    audience: 'operator',
    meaning:
      'A tenant asks for an API key and waits for your decision. Without one, the request expires after 7 days.',
    steps: [
      'Open Approvals: the request shows who asks, for which purpose, and with which scopes.',
      'Approve or deny it. A note to the tenant is optional.',
    ],
  },
};

export function anchorOf(kind: AlertKind): string {
  return KINDS[kind].title.toLowerCase().replaceAll(' ', '-');
}

export function kindsFor(audience: 'tenant' | 'operator'): AlertKind[] {
  return ALERT_KINDS.filter((kind) => KINDS[kind].audience === 'both' || KINDS[kind].audience === audience);
}

export function alertPath(
  { kind, wabaId, subject }: { kind: AlertKind; wabaId: string | null; subject: string },
  isOperator: boolean,
): string {
  const waba = wabaId === null ? null : `/portal/w/${encodeURIComponent(wabaId)}`;
  switch (kind) {
    case 'endpoint_failing':
    case 'endpoint_disabled':
    case 'endpoint_backlog':
    case 'client_certificate_expiring':
      return `${waba}/endpoints/${subject}`;
    case 'deliveries_failed':
      return `${waba}/deliveries?state=failed&endpointId=${subject}`;
    case 'url_set_by_key':
      return /^(endpoint|operations URL) /.test(subject)
        ? `${waba}/endpoints`
        : `${waba}/audit?action=${DESTINATION_SET}`;
    case 'api_key_expiring':
      return `${waba}/keys`;
    case 'access_token_refused':
      return isOperator && wabaId !== null ? `/portal/operator/wabas/${wabaId}` : `${waba}`;
    case 'broadcast_paused':
      return `${waba}/broadcasts/${subject}`;
    case 'waba_silent':
      return `${waba}/conversations`;
    case 'quota_nearly_used':
      return '/portal/operator/usage';
    case 'mail_failed':
      return '/portal/operator/users';
    case 'key_request_pending':
      return `/portal/operator/approvals/${subject}`;
    default:
      return isOperator ? '/portal/operator/health' : (waba ?? '/portal');
  }
}
