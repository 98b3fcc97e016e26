import { parseEgressProxy } from '../http/egress-proxy-url.ts';
import { readAppSecret } from './app-secret.ts';
import { readSettings } from './read-settings.ts';

/** The validated settings of one process. Frozen; made once in main.ts and handed down. */
export type Config = ReturnType<typeof loadConfig>;

/** Checks every HELIOGRAPH_* variable. Throws InvalidSettingsError, which names each wrong one and holds no secret. */
export function loadConfig(env: Readonly<Record<string, string | undefined>>) {
  const settings = readSettings(env);
  return deepFreeze({
    mode: settings.text('HELIOGRAPH_MODE') as 'production' | 'development',
    logLevel: settings.text('HELIOGRAPH_LOG_LEVEL'),
    accessLog: settings.text('HELIOGRAPH_ACCESS_LOG') as 'off' | 'requests' | 'all',
    traces: tracesSettings(settings),
    database: {
      url: settings.text('HELIOGRAPH_DATABASE_URL'),
      directUrl: settings.text('HELIOGRAPH_DATABASE_DIRECT_URL'),
      poolerPrepares: settings.boolean('HELIOGRAPH_DATABASE_POOLER_PREPARES'),
      poolMax: settings.integer('HELIOGRAPH_DATABASE_POOL_MAX'),
    },
    temporal: temporalSettings(settings),
    objectStore: objectStoreSettings(settings),
    api: apiSettings(settings),
    workerHealthPort: settings.integer('HELIOGRAPH_WORKER_HEALTH_PORT'),
    workerDrainTimeoutMs: settings.integer('HELIOGRAPH_WORKER_DRAIN_TIMEOUT_MS'),
    upstream: upstreamSettings(settings),
    encryptionKeys: settings.text('HELIOGRAPH_ENCRYPTION_KEYS'),
    webhooks: webhooksSettings(settings),
    delivery: {
      workflows: settings.text('HELIOGRAPH_DELIVERY_WORKFLOWS') as 'auto' | 'always',
    },
    sending: {
      /** Null: as upstream allows each number. */
      messagesPerSecond: settings.integer('HELIOGRAPH_SEND_MESSAGES_PER_SECOND') || null,
      timeoutMs: settings.integer('HELIOGRAPH_SEND_TIMEOUT_MS'),
      retryHours: settings.integer('HELIOGRAPH_SEND_RETRY_HOURS'),
    },
    oidc: {
      /** Empty: people sign in by password only. */
      issuer: settings.text('HELIOGRAPH_OIDC_ISSUER'),
      clientId: settings.text('HELIOGRAPH_OIDC_CLIENT_ID'),
      clientSecret: settings.text('HELIOGRAPH_OIDC_CLIENT_SECRET'),
    },
    portal: portalSettings(settings),
    mail: {
      /** Empty: no e-mail is sent. */
      smtpUrl: settings.text('HELIOGRAPH_SMTP_URL'),
      tls: settings.text('HELIOGRAPH_SMTP_TLS') as 'required' | 'opportunistic' | 'off',
      caFile: settings.text('HELIOGRAPH_SMTP_TLS_CA_FILE'),
      from: settings.text('HELIOGRAPH_MAIL_FROM'),
    },
    sandbox: {
      controlUrl: settings.baseUrl('HELIOGRAPH_SANDBOX_CONTROL_URL'),
      receiverUrl: settings.baseUrl('HELIOGRAPH_SANDBOX_RECEIVER_URL'),
    },
    retentionDays: {
      inbox: settings.integer('HELIOGRAPH_RETENTION_INBOX_DAYS'),
      events: settings.integer('HELIOGRAPH_RETENTION_EVENTS_DAYS'),
      attempts: settings.integer('HELIOGRAPH_RETENTION_ATTEMPTS_DAYS'),
    },
    media: {
      maxBytes: settings.integer('HELIOGRAPH_MEDIA_MAX_BYTES'),
      urlTtlSeconds: settings.integer('HELIOGRAPH_MEDIA_URL_TTL_SECONDS'),
    },
  });
}

type Settings = ReturnType<typeof readSettings>;

function portalSettings(settings: Settings) {
  return {
    passwordSignIn: settings.boolean('HELIOGRAPH_PORTAL_PASSWORD_SIGN_IN'),
    secondFactor: settings.text('HELIOGRAPH_PORTAL_SECOND_FACTOR') as 'optional' | 'operators' | 'all',
    operatorCidrs: settings.networks('HELIOGRAPH_PORTAL_OPERATOR_CIDRS'),
    operatorListen: settings.text('HELIOGRAPH_PORTAL_OPERATOR_LISTEN'),
    productOrigins: settings.list('HELIOGRAPH_PORTAL_PRODUCT_ORIGINS'),
  };
}

function tracesSettings(settings: Settings) {
  const headers = settings.list('HELIOGRAPH_TRACES_HEADERS').map((header) => {
    const at = header.indexOf('=');
    return [header.slice(0, at).trim(), header.slice(at + 1).trim()] as const;
  });
  return {
    /** Empty: no traces. */
    url: settings.baseUrl('HELIOGRAPH_TRACES_URL'),
    headers: Object.fromEntries(headers),
    percent: settings.integer('HELIOGRAPH_TRACES_PERCENT'),
  };
}

function webhooksSettings(settings: Settings) {
  const isDevelopment = settings.text('HELIOGRAPH_MODE') === 'development';
  return {
    allowHttp: settings.boolean('HELIOGRAPH_WEBHOOK_ALLOW_HTTP'),
    allowCidrs: settings.networks('HELIOGRAPH_WEBHOOK_ALLOW_CIDRS'),
    /** Empty: any. */
    ports: isDevelopment ? [] : settings.list('HELIOGRAPH_WEBHOOK_PORTS').map(Number),
    deny: settings.list('HELIOGRAPH_WEBHOOK_DENY'),
    nat64Prefixes: settings.networks('HELIOGRAPH_WEBHOOK_NAT_PREFIXES'),
    /** Null: direct connections. */
    proxy: parseEgressProxy(settings.text('HELIOGRAPH_WEBHOOK_PROXY')),
    timeoutMs: settings.integer('HELIOGRAPH_WEBHOOK_TIMEOUT_MS'),
    connectTimeoutMs: settings.integer('HELIOGRAPH_WEBHOOK_CONNECT_TIMEOUT_MS'),
    retryScheduleMs: settings
      .list('HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS')
      .map((seconds) => Number(seconds) * 1000),
    blockLimitHours: settings.integer('HELIOGRAPH_WEBHOOK_BLOCK_LIMIT_HOURS'),
    disableAfterHours: settings.integer('HELIOGRAPH_WEBHOOK_DISABLE_AFTER_HOURS'),
  };
}

function upstreamSettings(settings: Settings) {
  const appSecrets = settings.list('HELIOGRAPH_UPSTREAM_APP_SECRETS').map(readAppSecret);
  const appId = settings.text('HELIOGRAPH_UPSTREAM_APP_ID');
  const configId = settings.text('HELIOGRAPH_UPSTREAM_SIGNUP_CONFIG_ID');
  const [first] = appSecrets;
  return {
    graphUrl: settings.baseUrl('HELIOGRAPH_UPSTREAM_GRAPH_URL'),
    graphVersion: settings.text('HELIOGRAPH_UPSTREAM_GRAPH_VERSION'),
    appSecrets,
    /** The app in whose dialog customers connect numbers; null: none is configured. */
    signup:
      appId === '' || configId === '' || first === undefined
        ? null
        : { appId, configId, appSecret: first.secret },
    verifyToken: settings.text('HELIOGRAPH_UPSTREAM_VERIFY_TOKEN'),
    mediaHosts: settings.list('HELIOGRAPH_UPSTREAM_MEDIA_HOSTS'),
  };
}

function temporalSettings(settings: Settings) {
  const tls = {
    caFile: settings.text('HELIOGRAPH_TEMPORAL_TLS_CA_FILE'),
    certFile: settings.text('HELIOGRAPH_TEMPORAL_TLS_CERT_FILE'),
    keyFile: settings.text('HELIOGRAPH_TEMPORAL_TLS_KEY_FILE'),
    serverName: settings.text('HELIOGRAPH_TEMPORAL_TLS_SERVER_NAME'),
  };
  return {
    address: settings.text('HELIOGRAPH_TEMPORAL_ADDRESS'),
    namespace: settings.text('HELIOGRAPH_TEMPORAL_NAMESPACE'),
    tls: settings.boolean('HELIOGRAPH_TEMPORAL_TLS') ? tls : null,
    apiKey: settings.text('HELIOGRAPH_TEMPORAL_API_KEY'),
    taskQueuePrefix: settings.text('HELIOGRAPH_TEMPORAL_TASK_QUEUE_PREFIX'),
    uiUrl: settings.baseUrl('HELIOGRAPH_TEMPORAL_UI_URL'),
  };
}

function objectStoreSettings(settings: Settings) {
  return {
    url: settings.text('HELIOGRAPH_OBJECT_STORE_URL'),
    credentials: settings.text('HELIOGRAPH_OBJECT_STORE_CREDENTIALS') as 'keys' | 'role',
    accessKey: settings.text('HELIOGRAPH_OBJECT_STORE_ACCESS_KEY'),
    secretKey: settings.text('HELIOGRAPH_OBJECT_STORE_SECRET_KEY'),
    bucket: settings.text('HELIOGRAPH_OBJECT_STORE_BUCKET'),
    region: settings.text('HELIOGRAPH_OBJECT_STORE_REGION'),
    prefix: settings.text('HELIOGRAPH_OBJECT_STORE_PREFIX'),
    encryption: settings.text('HELIOGRAPH_OBJECT_STORE_ENCRYPTION') as 'default' | 'AES256' | 'aws:kms',
    kmsKeyId: settings.text('HELIOGRAPH_OBJECT_STORE_KMS_KEY_ID'),
  };
}

function apiSettings(settings: Settings) {
  return {
    host: settings.text('HELIOGRAPH_API_HOST'),
    port: settings.integer('HELIOGRAPH_API_PORT'),
    httpsPort: settings.integer('HELIOGRAPH_HTTPS_PORT'),
    metricsPort: settings.integer('HELIOGRAPH_API_METRICS_PORT'),
    tlsCertFile: settings.text('HELIOGRAPH_TLS_CERT_FILE'),
    tlsKeyFile: settings.text('HELIOGRAPH_TLS_KEY_FILE'),
    publicUrl: settings.baseUrl('HELIOGRAPH_PUBLIC_URL'),
    securityContacts: settings.list('HELIOGRAPH_SECURITY_CONTACTS'),
    drainNoticeMs: settings.integer('HELIOGRAPH_API_DRAIN_NOTICE_MS'),
    drainTimeoutMs: settings.integer('HELIOGRAPH_API_DRAIN_TIMEOUT_MS'),
    trustProxy: settings.networks('HELIOGRAPH_TRUST_PROXY'),
    platformCidrs: settings.networks('HELIOGRAPH_PLATFORM_API_CIDRS'),
    rateLimits: {
      readsPerSecond: settings.integer('HELIOGRAPH_RATE_LIMIT_READS_PER_SECOND'),
      writesPerSecond: settings.integer('HELIOGRAPH_RATE_LIMIT_WRITES_PER_SECOND'),
      wrongKeysPerMinute: settings.integer('HELIOGRAPH_RATE_LIMIT_WRONG_KEYS_PER_MINUTE'),
    },
  };
}

function deepFreeze<T extends object>(value: T): Readonly<T> {
  for (const member of Object.values(value)) {
    if (typeof member === 'object' && member !== null) deepFreeze(member);
  }
  return Object.freeze(value);
}

/** What an operator should know of settings that are valid and hardly meant. Holds no secret. */
export function configWarnings({ mode, api }: Pick<Config, 'mode' | 'api'>): string[] {
  const warnings: string[] = [];
  const host = new URL(api.publicUrl).hostname;
  if (mode === 'development' && !isLoopback(host)) {
    warnings.push(
      `HELIOGRAPH_MODE is development and HELIOGRAPH_PUBLIC_URL names ${host}: http endpoints, http identity providers and the sandbox are allowed; set it to production for an installation`,
    );
  }
  const warning = proxyWarning({ mode, api });
  return warning === null ? warnings : [...warnings, warning];
}

/** Whether a proxy must be there whose word about clients does not count. */
function proxyWarning({ mode, api }: Pick<Config, 'mode' | 'api'>): string | null {
  if (mode === 'development' || api.httpsPort >= 0 || api.trustProxy.length > 0) return null;
  return (
    'HELIOGRAPH_TRUST_PROXY is empty and no https port is open, so a reverse proxy ends TLS and every client seems to ' +
    'have its address: limits of sign-in count for all together, logs show the proxy; set it to the address of the proxy'
  );
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}
