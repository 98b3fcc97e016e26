import { SERVER_SETTINGS } from './server-settings.ts';
import {
  choice,
  durationMs,
  integer,
  optional,
  optionalSecret,
  retentionDays,
  type Setting,
  setting,
} from './setting.ts';

/** Every setting the service reads, with its type, default and meaning: the one list that docs, start-up and CI share. */
export const SETTINGS = {
  HELIOGRAPH_MODE: choice(
    ['production', 'development'],
    'production',
    'development allows http and loopback webhook endpoints and the sandbox',
  ),
  ...SERVER_SETTINGS,
  HELIOGRAPH_API_HOST: setting({ kind: 'text', fallback: '127.0.0.1', about: 'address the API listens on' }),
  HELIOGRAPH_API_PORT: integer('8080', [0, 65535], 'plain http port'),
  HELIOGRAPH_HTTPS_PORT: integer(
    '-1',
    [-1, 65535],
    'https port; -1 switches it off (a reverse proxy then ends TLS)',
  ),
  HELIOGRAPH_TLS_CERT_FILE: optional('file', 'PEM certificate chain for the https port'),
  HELIOGRAPH_TLS_KEY_FILE: optional('file', 'PEM key for the https port'),
  HELIOGRAPH_API_METRICS_PORT: integer(
    '-1',
    [-1, 65535],
    'port of the API for /metrics alone, not for the public; -1 switches it off',
  ),
  HELIOGRAPH_WORKER_HEALTH_PORT: integer(
    '-1',
    [-1, 65535],
    'port of the worker for /healthz, /readyz and /metrics, not for the public; -1 switches it off',
  ),
  HELIOGRAPH_API_DRAIN_NOTICE_MS: durationMs(
    '3000',
    120_000,
    'how long a stopping API reports this in /readyz before it closes its ports: longer than load balancers take to notice',
  ),
  HELIOGRAPH_API_DRAIN_TIMEOUT_MS: durationMs(
    '15000',
    600_000,
    'after it, how long requests in progress may take before they are aborted',
  ),
  HELIOGRAPH_WORKER_DRAIN_TIMEOUT_MS: durationMs(
    '30000',
    600_000,
    'how long a stopping worker may take to finish its work in progress',
  ),
  HELIOGRAPH_PUBLIC_URL: setting({
    kind: 'url',
    about: 'https address under which tenants reach API and media',
  }),
  HELIOGRAPH_TRUST_PROXY: optional('cidrs', 'reverse proxies whose X-Forwarded-* headers count'),
  HELIOGRAPH_RATE_LIMIT_READS_PER_SECOND: integer(
    '100',
    [0, 100000],
    'GET requests of one API key, on average over 10 seconds; 0 sets no limit',
  ),
  HELIOGRAPH_RATE_LIMIT_WRITES_PER_SECOND: integer(
    '100',
    [0, 100000],
    'all other requests of one API key, on average over 10 seconds; 0 sets no limit',
  ),
  HELIOGRAPH_RATE_LIMIT_WRONG_KEYS_PER_MINUTE: integer(
    '60',
    [0, 100000],
    'invalid-key requests per minute, client address and process; beyond this, look-ups for that address get the lowest priority; 0 disables this',
  ),
  HELIOGRAPH_UPSTREAM_GRAPH_URL: setting({
    kind: 'url',
    fallback: 'https://graph.facebook.com',
    about: 'Graph API of the upstream platform',
  }),
  HELIOGRAPH_UPSTREAM_GRAPH_VERSION: setting({
    kind: 'text',
    fallback: 'v26.0',
    about: 'Graph API version',
  }),
  HELIOGRAPH_UPSTREAM_APP_SECRETS: setting({
    kind: 'list',
    secret: true,
    about:
      'app secrets that sign upstream webhooks, several while one is rotated; secret@wabaId+wabaId speaks for these WABAs only',
  }),
  HELIOGRAPH_UPSTREAM_APP_ID: optional(
    'text',
    'id of the upstream app in whose dialog customers connect numbers by set-up links; its secret is the first of HELIOGRAPH_UPSTREAM_APP_SECRETS; empty: set-up links are made with steps only',
  ),
  HELIOGRAPH_UPSTREAM_SIGNUP_CONFIG_ID: optional(
    'text',
    'id of the configuration of Embedded Signup in that app',
  ),
  HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: setting({
    kind: 'text',
    secret: true,
    about: 'token of the upstream verification handshake',
  }),
  HELIOGRAPH_UPSTREAM_MEDIA_HOSTS: setting({
    kind: 'list',
    fallback: 'lookaside.fbsbx.com,fbcdn.net',
    about:
      'host names, with their subdomains, that media may be fetched from with the access token; never those of Graph',
  }),
  HELIOGRAPH_ENCRYPTION_KEYS: setting({
    kind: 'text',
    secret: true,
    about: 'id:base64 of 32 bytes, comma separated; the first encrypts, all decrypt; one without an id is k1',
  }),
  HELIOGRAPH_WEBHOOK_ALLOW_HTTP: setting({
    kind: 'boolean',
    fallback: 'false',
    about: 'accept http:// webhook endpoints (development mode only)',
  }),
  HELIOGRAPH_WEBHOOK_ALLOW_CIDRS: optional(
    'cidrs',
    'private address ranges that webhook endpoints may be in',
  ),
  HELIOGRAPH_WEBHOOK_PORTS: setting({
    kind: 'list',
    fallback: '443,8443',
    about:
      'ports that new and changed webhook endpoints and operations URLs may name; development mode allows any',
  }),
  HELIOGRAPH_WEBHOOK_DENY: optional(
    'list',
    'names, *.names, addresses and networks, with or without a port, that no webhook of any tenant reaches',
  ),
  HELIOGRAPH_WEBHOOK_NAT_PREFIXES: optional(
    'cidrs',
    'NAT64 prefixes of the own network, of 32, 40, 48, 56, 64 or 96 bits; the IPv4 addresses behind them are checked',
  ),
  HELIOGRAPH_WEBHOOK_PROXY: optionalSecret(
    'text',
    'egress proxy (HTTP CONNECT) for webhooks, checks of URLs and notices to operations URLs: http://user:password@host:port; empty: direct connections',
  ),
  HELIOGRAPH_WEBHOOK_TIMEOUT_MS: integer('15000', [1000, 20000], 'whole webhook attempt, body included'),
  HELIOGRAPH_WEBHOOK_CONNECT_TIMEOUT_MS: integer(
    '5000',
    [100, 20000],
    'DNS, TCP and TLS of a webhook attempt',
  ),
  HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: setting({
    kind: 'list',
    fallback: '5,30,120,600,1800,7200,21600,43200,86400,86400',
    about: 'waits between attempts; each is varied by 20 percent',
  }),
  HELIOGRAPH_WEBHOOK_BLOCK_LIMIT_HOURS: integer(
    '0',
    [0, 720],
    'a delivery that fails for longer than this while others of its key wait steps aside; 0: after 15 minutes for `order` events and wide order scopes, never for others, unlike `blockLimitSeconds` 0 of an endpoint, which is never',
  ),
  HELIOGRAPH_WEBHOOK_DISABLE_AFTER_HOURS: integer(
    '120',
    [1, 8760],
    'an endpoint that has only failed for this long is disabled; its events are kept',
  ),
  HELIOGRAPH_DELIVERY_WORKFLOWS: choice(
    ['auto', 'always'],
    'auto',
    'which deliveries get a workflow run, unless an endpoint says otherwise (`deliveryWorkflows`). auto: all while traffic is calm (5 first attempts per second and core of one machine), and failures; always: all, and their attempts are made inside their runs',
  ),
  HELIOGRAPH_RETENTION_INBOX_DAYS: retentionDays(
    '14',
    'bodies as upstream sent them; those that failed are kept',
  ),
  HELIOGRAPH_RETENTION_EVENTS_DAYS: retentionDays(
    '90',
    'events and the log of their deliveries; pending deliveries are kept',
  ),
  HELIOGRAPH_RETENTION_ATTEMPTS_DAYS: retentionDays(
    '30',
    'the request and response of each attempt, at most as long as the deliveries',
  ),
  HELIOGRAPH_MEDIA_MAX_BYTES: integer(
    '104857600',
    [1024, 2147483648],
    'largest inbound media file that is stored',
  ),
  HELIOGRAPH_MEDIA_URL_TTL_SECONDS: integer(
    '0',
    [0, 31_536_000],
    'URLs of received files (`mediaUrl`) are signed and expire after so many seconds, at most 1 year; 0: they are not signed and do not expire, unless the tenant overrides it',
  ),
  HELIOGRAPH_SEND_MESSAGES_PER_SECOND: integer(
    '0',
    [0, 1000],
    'messages that leave one phone number per second; more wait. 0: as upstream allows the number (20, 80 or 1,000), and 80 where it says nothing',
  ),
  HELIOGRAPH_SEND_TIMEOUT_MS: integer(
    '30000',
    [1000, 60000],
    'how long the upstream platform may take to answer a send',
  ),
  HELIOGRAPH_SEND_RETRY_HOURS: integer(
    '24',
    [1, 720],
    'how long a message is tried again while the upstream platform refuses it for reasons that pass',
  ),
  HELIOGRAPH_OIDC_ISSUER: optional(
    'text',
    'OpenID provider that people may sign in to the portal with; empty: by password only',
  ),
  HELIOGRAPH_OIDC_CLIENT_ID: optional('text', 'client that the OpenID provider knows the portal by'),
  HELIOGRAPH_OIDC_CLIENT_SECRET: optionalSecret('text', 'its secret'),
  HELIOGRAPH_PORTAL_PASSWORD_SIGN_IN: setting({
    kind: 'boolean',
    fallback: 'true',
    about: 'people may sign in to the portal by password; false needs an OpenID provider',
  }),
  HELIOGRAPH_PORTAL_SECOND_FACTOR: choice(
    ['optional', 'operators', 'all'],
    'optional',
    'who must have a second factor (TOTP) to use the portal; all others may have one',
  ),
  HELIOGRAPH_PORTAL_OPERATOR_CIDRS: optional(
    'cidrs',
    "networks from which operators' pages are reached; from elsewhere they answer 404; empty: from all",
  ),
  HELIOGRAPH_PORTAL_OPERATOR_LISTEN: optional(
    'address',
    "host:port of a further plain http port that has operators' pages; all others then answer 404 for them; empty: none",
  ),
  HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: optional(
    'text',
    'https origins of the product whose people open the portal by links, separated by commas: links lead back to them, and their pages may have the portal in a frame; empty: none',
  ),
  HELIOGRAPH_PLATFORM_API_CIDRS: optional(
    'cidrs',
    'networks from which the platform API (/api/platform) is reached; from elsewhere it returns 404; empty: from all',
  ),
  HELIOGRAPH_SMTP_URL: optionalSecret(
    'text',
    'mail server for alerts, invitations and password links: smtp://user:password@host:587, or smtps://host:465 for TLS from the start; empty: no e-mail is sent',
  ),
  HELIOGRAPH_SMTP_TLS: choice(
    ['required', 'opportunistic', 'off'],
    'required',
    'of a smtp:// URL. required: STARTTLS or nothing is sent; opportunistic: where the server offers it; off: never',
  ),
  HELIOGRAPH_SMTP_TLS_CA_FILE: optional(
    'file',
    'PEM certificates of the authorities that the mail server is trusted by; empty: those that Node.js brings',
  ),
  HELIOGRAPH_MAIL_FROM: optional('text', 'sender of e-mails, such as Heliograph <alerts@example.com>'),
  HELIOGRAPH_SECURITY_CONTACTS: optional(
    'list',
    'contacts for reports of vulnerabilities, in /.well-known/security.txt: mailto:security@example.com, or https:// addresses of a page; empty: no such file',
  ),
  HELIOGRAPH_SANDBOX_CONTROL_URL: optional(
    'text',
    'where the sandbox console reaches the stand-in platform (development mode only)',
  ),
  HELIOGRAPH_SANDBOX_RECEIVER_URL: optional(
    'text',
    'where the sandbox console reaches the sample tenant (development mode only)',
  ),
  HELIOGRAPH_LOG_LEVEL: choice(['debug', 'info', 'warn', 'error'], 'info', 'log level'),
  HELIOGRAPH_ACCESS_LOG: choice(
    ['off', 'requests', 'all'],
    'requests',
    'a line per answered request at level info. requests: all but webhooks of upstream, readiness and liveness; all: those webhooks too',
  ),
  HELIOGRAPH_TRACES_URL: optional(
    'text',
    'receiver of OTLP over HTTP for traces, such as http://collector:4318; empty: no traces',
  ),
  HELIOGRAPH_TRACES_HEADERS: optionalSecret('list', 'headers that it wants, as name=value'),
  HELIOGRAPH_TRACES_PERCENT: integer('100', [0, 100], 'share of the messages that are traced'),
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof SETTINGS;

const RUNS_OF_FAILURES =
  'at most 200 deliveries that failed have a workflow, 20 of one endpoint, and the others are retried without one';

/** Settings of earlier versions, each with what to do in its place. */
export const REMOVED_SETTINGS: Readonly<Record<string, string>> = {
  HELIOGRAPH_TEMPORAL_UI_PUBLIC_URL:
    'delete it; only operators get links to the Temporal UI, which shows the runs of all tenants',
  HELIOGRAPH_RETRY_WORKFLOWS_MAX: `delete it; ${RUNS_OF_FAILURES}`,
  HELIOGRAPH_RETRY_WORKFLOWS_PER_ENDPOINT: `delete it; ${RUNS_OF_FAILURES}`,
};
