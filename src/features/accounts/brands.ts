import { createHash } from 'node:crypto';
import { type Audited, recordBy } from '../../platform/audit/audit.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, queryOne } from '../../platform/postgres/sql.ts';
import { checkingMember, checkName, invalidValue } from '../../platform/request-input.ts';
import { checkAccent } from './accent-colour.ts';
import { type PictureType, pictureOf } from './image-bytes.ts';

/** What the portal shows in place of our name, logo and colour; null: ours. */
export type Brand = {
  name: string | null;
  accentColor: string | null;
  /** SHA-256 of the logo, by which it is fetched. */
  logoHash: string | null;
};

/** What is left out stays; null takes it away. */
export type BrandChange = { name?: string | null; accentColor?: string | null; logo?: string | null };

const MAX_BRAND_NAME = 60;
const MAX_LOGO_BYTES = 32 * 1024;
const MAX_LOGO_PIXELS = 1_024;

const NOTHING: Brand = { name: null, accentColor: null, logoHash: null };

/** Sets the brand of a tenant, or with null that of the installation. Throws RequestError `invalid_value` with `param`. */
export async function setBrand(
  { database: trx, actor }: { database: Transaction } & Audited,
  tenantId: string | null,
  change: BrandChange,
): Promise<Brand> {
  const before = await ownBrand(trx, tenantId);
  const name = change.name == null ? change.name : await checkedName(change.name);
  const accentColor = change.accentColor == null ? change.accentColor : checkAccent(change.accentColor);
  const logo = change.logo == null ? change.logo : checkLogo(change.logo);
  await execute(
    trx,
    `insert into brands (tenant_id, name, accent_color, logo, logo_type, logo_hash)
     values (:tenantId, :name, :accentColor, :logo, :logoType, :logoHash)
     on conflict (tenant_id) do update set
       name = excluded.name, accent_color = excluded.accent_color,
       logo = case when cast(:keepsLogo as boolean) then brands.logo else excluded.logo end,
       logo_type = case when cast(:keepsLogo as boolean) then brands.logo_type else excluded.logo_type end,
       logo_hash = case when cast(:keepsLogo as boolean) then brands.logo_hash else excluded.logo_hash end`,
    {
      tenantId,
      name: name === undefined ? before.name : name,
      accentColor: accentColor === undefined ? before.accentColor : accentColor,
      logo: logo?.bytes ?? null,
      logoType: logo?.type ?? null,
      logoHash: logo?.hash ?? null,
      keepsLogo: logo === undefined,
    },
  );
  const after = await ownBrand(trx, tenantId);
  if (JSON.stringify(before) !== JSON.stringify(after)) {
    const target = tenantId === null ? 'installation' : `tenant ${tenantId}`;
    await recordBy(trx, actor, { tenantId, wabaId: null, action: 'brand.set', target, detail: after });
  }
  return after;
}

async function checkedName(text: string): Promise<string> {
  return await checkingMember('name', () => {
    const name = checkName('The name', text);
    if (name.length <= MAX_BRAND_NAME) return name;
    throw invalidValue(`The name must have at most ${MAX_BRAND_NAME} characters.`);
  });
}

/** Judged by its bytes, whatever the program calls it. */
function checkLogo(base64: string): { bytes: Buffer; type: PictureType; hash: string } {
  const bytes = Buffer.from(base64, 'base64');
  const isBase64 = bytes.toString('base64') === base64;
  if (!isBase64 || bytes.length > MAX_LOGO_BYTES) {
    throw invalidValue(`The logo must be base64 of at most ${MAX_LOGO_BYTES} bytes.`, 'logo');
  }
  const picture = pictureOf(bytes);
  if (picture === null) throw invalidValue('The logo must be a PNG, JPEG or WebP picture.', 'logo');
  const { type, width, height } = picture;
  if (Math.max(width, height) > MAX_LOGO_PIXELS) {
    throw invalidValue(
      `The logo must have at most ${MAX_LOGO_PIXELS} pixels on a side, not ${width} by ${height}.`,
      'logo',
    );
  }
  return { bytes, type, hash: createHash('sha256').update(bytes).digest('hex') };
}

const BRAND = `b.name, b.accent_color as "accentColor", b.logo_hash as "logoHash"`;

async function ownBrand(database: Database, tenantId: string | null): Promise<Brand> {
  const text = `select ${BRAND} from brands b where b.tenant_id is not distinct from cast(:tenantId as bigint)`;
  return (await queryOne<Brand>(database, text, { tenantId })) ?? NOTHING;
}

/** What pages of a tenant show: its own values, then those of the installation; a null tenant has the latter only. */
export async function brandOf(database: Database, tenantId: string | null): Promise<Brand> {
  const text = `select coalesce(t.name, i.name) as name, coalesce(t.accent_color, i.accent_color) as "accentColor",
                       coalesce(t.logo_hash, i.logo_hash) as "logoHash"
                  from (select) one left join brands i on i.tenant_id is null
                  left join brands t on t.tenant_id = cast(:tenantId as bigint)`;
  return (await queryOne<Brand>(database, text, { tenantId })) ?? NOTHING;
}

/** A logo by its hash, of whatever tenant: who has the hash has seen the page. */
export async function findLogo(
  database: Database,
  hash: string,
): Promise<{ bytes: Buffer; type: PictureType } | null> {
  const text = 'select logo as bytes, logo_type as type from brands where logo_hash = :hash limit 1';
  return await queryOne(database, text, { hash });
}

export async function forgetBrandOfTenant(trx: Transaction, tenantId: string): Promise<void> {
  await execute(trx, 'delete from brands where tenant_id = :tenantId', { tenantId });
}
