import { type Output, randomPassword, randomString, type Services } from '~templates-utils';
import type { Input } from './meta';

/** Heliograph and its PostgreSQL on Easypanel. docs/operators/platforms.md */
export function generate(input: Input): Output {
  const databasePassword = randomPassword();
  const services: Services = [
    {
      type: 'app',
      data: {
        serviceName: input.appServiceName,
        source: { type: 'image', image: input.appServiceImage },
        deploy: {
          command:
            'node --heap-growing-percent=80 --max-semi-space-size=8 --import ./bin/stripped-types.js src/main.ts run',
        },
        domains: [{ host: '$(EASYPANEL_DOMAIN)', port: 8080 }],
        env: [
          `DATABASE_URL=postgresql://postgres:${databasePassword}@$(PROJECT_NAME)_${input.databaseServiceName}:5432/$(PROJECT_NAME)`,
          'PORT=8080',
          'HELIOGRAPH_PUBLIC_URL=https://$(PRIMARY_DOMAIN)',
          // 32 characters, which are 32 bytes.
          `HELIOGRAPH_ENCRYPTION_KEYS=${btoa(randomString(32))}`,
          `HELIOGRAPH_UPSTREAM_VERIFY_TOKEN=${randomString(32)}`,
          `HELIOGRAPH_UPSTREAM_APP_SECRETS=${input.appSecrets}`,
          // The network of the proxy is made by Docker.
          'HELIOGRAPH_TRUST_PROXY=10.0.0.0/8,172.16.0.0/12',
          `HELIOGRAPH_TEMPORAL_ADDRESS=${input.temporalAddress}`,
          `HELIOGRAPH_TEMPORAL_NAMESPACE=${input.temporalNamespace}`,
          `HELIOGRAPH_TEMPORAL_TLS=${input.temporalTls !== false}`,
          `HELIOGRAPH_TEMPORAL_API_KEY=${input.temporalApiKey ?? ''}`,
          `HELIOGRAPH_OBJECT_STORE_URL=${input.objectStoreUrl}`,
          `HELIOGRAPH_OBJECT_STORE_REGION=${input.objectStoreRegion ?? ''}`,
          `HELIOGRAPH_OBJECT_STORE_BUCKET=${input.objectStoreBucket}`,
          `HELIOGRAPH_OBJECT_STORE_ACCESS_KEY=${input.objectStoreAccessKey}`,
          `HELIOGRAPH_OBJECT_STORE_SECRET_KEY=${input.objectStoreSecretKey}`,
          'HELIOGRAPH_PORTAL_SECOND_FACTOR=operators',
          'HELIOGRAPH_MEDIA_URL_TTL_SECONDS=604800',
        ].join('\n'),
      },
    },
    {
      type: 'postgres',
      data: { serviceName: input.databaseServiceName, password: databasePassword, image: 'postgres:17' },
    },
  ];
  return { services };
}
