import { sealedSecret } from '../../platform/crypto/sealed-secret.ts';

const ROW = { table: 'webhook_endpoints', id: ['id', 'bigint'] } as const;

export const ENDPOINT_SECRET = sealedSecret({ ...ROW, secret: 'secret', rotates: true });
export const ENDPOINT_SIGNING_KEY = sealedSecret({ ...ROW, secret: 'signing_key', rotates: true });
export const ENDPOINT_APP_SECRET = sealedSecret({ ...ROW, secret: 'app_secret' });
export const ENDPOINT_CLIENT_KEY = sealedSecret({ ...ROW, secret: 'client_key' });
export const ENDPOINT_HEADERS = sealedSecret({ ...ROW, secret: 'custom_headers' });
