import { Type } from 'typebox';
import { type Brand, setBrand } from '../../features/accounts/brands.ts';
import { named, namedClosed, nullable } from '../external/schema-kit.ts';
import { inTenant } from './in-tenant.ts';
import { type PlatformCall, platformOperation } from './platform-operation.ts';
import { OF_TENANT, TENANT_PATH } from './platform-schemas.ts';

const BrandAnswer = named('Brand', {
  name: nullable(Type.String(), 'Acme Messaging'),
  accentColor: nullable(Type.String(), '#0b5cad'),
  logoUrl: nullable(Type.String()),
});

const BrandInput = namedClosed('BrandInput', {
  name: Type.Optional(nullable(Type.String())),
  accentColor: Type.Optional(nullable(Type.String({ maxLength: 7 }))),
  logo: Type.Optional(
    nullable(
      Type.String({
        maxLength: 50_000,
        description: 'PNG, JPEG or WebP in base64: at most 32 KiB, 1024 pixels a side.',
      }),
    ),
  ),
});

const requests = { 'a name and a colour': { name: 'Acme Messaging', accentColor: '#0b5cad' } };
const answers = { 200: { schema: BrandAnswer, description: 'The brand as it is now.' } };

function brandJson({ logoHash, ...brand }: Brand, { publicUrl }: PlatformCall) {
  return { ...brand, logoUrl: logoHash === null ? null : `${publicUrl}/portal/brand/${logoHash}` };
}

const HOW =
  'Null removes a value; what is left out stays. The accent colour is that of buttons: white text on it needs a contrast of 4.5:1, or it is refused with the contrast that it has. ' +
  'The kind of the logo is found by its bytes; SVG is none of them.';

const putBrand = platformOperation({
  id: 'putBrand',
  method: 'PUT',
  path: '/api/platform/brand',
  scope: 'tenants',
  summary: 'Set name, logo and colour of the portal',
  description: `For all tenants that have no values of their own, and for the sign-in. ${HOW}`,
  tag: 'Portal',
  requests,
  body: BrandInput,
  answers,
  run: async ({ tools }, change) =>
    await tools.database.transaction(
      async (database) => await setBrand({ ...tools, database }, null, change),
    ),
  json: brandJson,
  example: 'put-brand --name "Acme Messaging" --accent-color "#0b5cad"',
});

const putTenantBrand = platformOperation({
  id: 'putTenantBrand',
  method: 'PUT',
  path: `${TENANT_PATH}/brand`,
  scope: 'tenants',
  summary: 'Set name, logo and colour of the portal for a tenant',
  description: HOW,
  tag: 'Portal',
  errors: ['unknown_tenant'],
  requests,
  params: OF_TENANT,
  body: BrandInput,
  answers,
  run: async (call, { externalId, ...change }) =>
    await inTenant(call, { externalId }, (tools, { userId }) => setBrand(tools, userId, change)),
  json: brandJson,
  example: 'put-tenant-brand acme --accent-color "#0b5cad"',
});

export const BRAND_OPERATIONS = [putBrand, putTenantBrand];
