import { choice, integer, optional, optionalSecret, setting } from './setting.ts';

export const SERVER_SETTINGS = {
  HELIOGRAPH_DATABASE_URL: setting({
    kind: 'database',
    secret: true,
    about: 'PostgreSQL 16 to 18: postgresql://user:password@host:5432/name?parameters',
  }),
  HELIOGRAPH_DATABASE_DIRECT_URL: optionalSecret(
    'database',
    'the same database without a pooler, where HELIOGRAPH_DATABASE_URL leads to one: for LISTEN and migrations',
  ),
  HELIOGRAPH_DATABASE_POOLER_PREPARES: setting({
    kind: 'boolean',
    fallback: 'false',
    about: 'the pooler keeps prepared statements (PgBouncer 1.21 or newer with max_prepared_statements)',
  }),
  HELIOGRAPH_DATABASE_POOL_MAX: integer('10', [2, 200], 'connections per process'),
  HELIOGRAPH_TEMPORAL_ADDRESS: setting({
    kind: 'address',
    fallback: '127.0.0.1:7233',
    about: 'Temporal frontend, host:port',
  }),
  HELIOGRAPH_TEMPORAL_NAMESPACE: setting({ kind: 'text', fallback: 'default', about: 'Temporal namespace' }),
  HELIOGRAPH_TEMPORAL_TLS: setting({
    kind: 'boolean',
    fallback: 'false',
    about: 'connect to Temporal with TLS',
  }),
  HELIOGRAPH_TEMPORAL_TLS_CA_FILE: optional(
    'file',
    'PEM certificates of the authorities that Temporal is trusted by; empty: those that Node.js brings',
  ),
  HELIOGRAPH_TEMPORAL_TLS_CERT_FILE: optional('file', 'PEM certificate of this client (mTLS)'),
  HELIOGRAPH_TEMPORAL_TLS_KEY_FILE: optional('file', 'PEM key of this client (mTLS)'),
  HELIOGRAPH_TEMPORAL_TLS_SERVER_NAME: optional(
    'text',
    'name in the certificate of Temporal, where it is not that of its address',
  ),
  HELIOGRAPH_TEMPORAL_API_KEY: optionalSecret(
    'text',
    'API key of Temporal Cloud or of a proxy before Temporal',
  ),
  HELIOGRAPH_TEMPORAL_TASK_QUEUE_PREFIX: setting({
    kind: 'text',
    fallback: 'heliograph',
    about: 'first part of every task queue name',
  }),
  HELIOGRAPH_TEMPORAL_UI_URL: setting({
    kind: 'url',
    fallback: 'http://127.0.0.1:8233',
    about: 'where operators open the Temporal UI; used for links',
  }),
  HELIOGRAPH_OBJECT_STORE_URL: setting({
    kind: 'url',
    fallback: 'http://127.0.0.1:9000',
    about: 'MinIO or another S3 store',
  }),
  HELIOGRAPH_OBJECT_STORE_CREDENTIALS: choice(
    ['keys', 'role'],
    'keys',
    'keys: the two settings below; role: those of the AWS environment, such as the role of the instance or pod',
  ),
  HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: optional('text', 'access key of the object store'),
  HELIOGRAPH_OBJECT_STORE_SECRET_KEY: optionalSecret('text', 'its secret'),
  HELIOGRAPH_OBJECT_STORE_BUCKET: setting({
    kind: 'text',
    fallback: 'heliograph-media',
    about: 'bucket for inbound media; created when missing',
  }),
  HELIOGRAPH_OBJECT_STORE_REGION: setting({ kind: 'text', fallback: 'us-east-1', about: 'S3 region' }),
  HELIOGRAPH_OBJECT_STORE_PREFIX: optional(
    'text',
    'first part of the name of every object, such as gateway/',
  ),
  HELIOGRAPH_OBJECT_STORE_ENCRYPTION: choice(
    ['default', 'AES256', 'aws:kms'],
    'default',
    'server-side encryption requested with every object; default: the setting of the bucket',
  ),
  HELIOGRAPH_OBJECT_STORE_KMS_KEY_ID: optional('text', 'key for aws:kms; empty: that of the account'),
};
