import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { findTenant } from '../../../accounts/accounts.ts';
import {
  effectivePolicy,
  POLICY_NAMES,
  POLICY_VALUES,
  type PolicyDefaults,
  type PolicyName,
  policyDefaults,
  readTenantPolicy,
  setTenantPolicy,
  type TenantPolicy,
} from '../../../accounts/tenant-policies.ts';
import { readTenantUsage, type TenantUsage } from '../../../accounts/tenant-usage.ts';
import { invalidValue, type RequestError } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown, pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, type Viewer, viewerOf, wabaOf } from '../access/viewer.ts';
import { postForm, textField } from '../components/form.ts';
import { dataTable, detailList } from '../components/table.ts';
import { formLine, formValues } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

const DONE = { saved: 'The values are saved.' };
const ROW_ID = /^\d{1,18}$/;

/** What a page is about: whose values, and who may set which. */
type Place = {
  tenantId: string;
  path: string;
  title: string;
  active: string;
  trail?: { label: string; href: string }[];
};

/** The values of a tenant: for its administrators under /portal/w/:wabaId/data, for operators with the tenant. */
export function policyPages(app: PortalApp, context: PortalContext): void {
  const body = Type.Object(
    Object.fromEntries(POLICY_NAMES.map((name) => [name, Type.Optional(formLine(20))])),
  );
  app.get('/portal/w/:wabaId/data', { config: PAGES.member }, async (request, reply) =>
    showPolicy(request, reply, context, { place: tenantPlace(request), given: null, error: null }),
  );
  const ofTenant = { config: PAGES.admin, schema: { body } };
  app.post('/portal/w/:wabaId/data', ofTenant, async (request, reply) =>
    savePolicy(request, reply, context, tenantPlace(request)),
  );
  const params = Type.Object({ id: Type.String() });
  const path = '/portal/operator/tenants/:id/data';
  app.get(path, { config: PAGES.operator, schema: { params } }, async (request, reply) => {
    const place = await operatorPlace(context, request.params.id);
    return await showPolicy(request, reply, context, { place, given: null, error: null });
  });
  const ofOperator = { config: PAGES.operator, schema: { params, body } };
  app.post(path, ofOperator, async (request, reply) =>
    savePolicy(request, reply, context, await operatorPlace(context, request.params.id)),
  );
}

function tenantPlace(request: FastifyRequest): Place {
  const { wabaId, tenantId } = wabaOf(request);
  return { tenantId, path: `/portal/w/${wabaId}/data`, title: 'Data and storage', active: 'data' };
}

async function operatorPlace({ database }: PortalContext, id: string): Promise<Place> {
  const tenant = ROW_ID.test(id) ? await findTenant(database, id) : null;
  if (tenant === null) throw pageNotFound();
  const trail = [
    { label: 'Tenants', href: '/portal/operator/tenants' },
    { label: tenant.businessName, href: `/portal/operator/tenants/${id}` },
  ];
  const path = `/portal/operator/tenants/${id}/data`;
  return { tenantId: id, path, title: 'Data and storage', active: 'operator/tenants', trail };
}

/** Those that this viewer may set. */
function settableBy({ role }: Viewer): PolicyName[] {
  if (role === 'member') return [];
  return POLICY_NAMES.filter((name) => role === 'operator' || POLICY_VALUES[name].by === 'tenant');
}

async function savePolicy(
  request: FastifyRequest,
  reply: FastifyReply,
  context: PortalContext,
  place: Place,
): Promise<FastifyReply> {
  const given = formValues(request.body);
  return await orShown(
    async () => {
      const names = settableBy(viewerOf(request));
      const change = Object.fromEntries(names.map((name) => [name, numberOf(name, given.text(name))]));
      const tools = {
        database: context.database,
        actor: actorOf(request),
        defaults: policyDefaults(context.config),
      };
      await setTenantPolicy(tools, place.tenantId, change as Partial<TenantPolicy>);
      return reply.redirect(`${place.path}?done=saved`, 303);
    },
    (error) => showPolicy(request, reply, context, { place, given, error }),
  );
}

function numberOf(name: PolicyName, text: string): number | null {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  if (/^\d{1,15}$/.test(trimmed)) return Number(trimmed);
  throw invalidValue(`${POLICY_VALUES[name].label} must be a whole number.`, name);
}

type Shown = { place: Place; given: ReturnType<typeof formValues> | null; error: RequestError | null };

async function showPolicy(
  request: FastifyRequest,
  reply: FastifyReply,
  { database, config }: PortalContext,
  { place, given, error }: Shown,
): Promise<FastifyReply> {
  const viewer = viewerOf(request);
  const defaults = policyDefaults(config);
  const own = await readTenantPolicy(database, place.tenantId);
  const { title, active, trail, path } = place;
  const names = settableBy(viewer);
  const fields = names.map((name) => valueField(name, { own, given, error, defaults }));
  const form = html`${fields}<div class="buttons"><button class="primary">Save</button></div>`;
  const view = {
    ...{ title, active, done: DONE },
    ...(trail !== undefined && { trail }),
    lead: 'What is kept, for how long, and how much.',
    body: html`${usageView(await readTenantUsage(database, place.tenantId), effectivePolicy(own, defaults))}${inForce(own, defaults)}
${names.length > 0 && html`<section class="card"><h2>Own values</h2>${postForm(viewer, path, form)}</section>`}`,
  };
  return sendPage(reply, view, error === null ? 200 : 422);
}

/** What is used, and of which quota. */
function usageView(usage: TenantUsage, policy: TenantPolicy): Markup {
  const { storedBytes, storedFiles, uploadedBytes, uploadedFiles } = usage;
  const files = html`<span class="faint">in ${counted(storedFiles)} ${storedFiles === 1 ? 'file' : 'files'}</span>`;
  return html`<section class="card"><h2>In use</h2>${detailList([
    [
      'Stored files',
      html`${quotaUse('Stored files', storedBytes, policy.storedBytesQuota, sizeText)} ${files}`,
    ],
    [
      'Files uploaded today (UTC)',
      quotaUse('Files uploaded', uploadedFiles, policy.uploadFilesPerDay, counted),
    ],
    [
      'Bytes uploaded today (UTC)',
      quotaUse('Bytes uploaded', uploadedBytes, policy.uploadBytesPerDay, sizeText),
    ],
  ])}</section>`;
}

function quotaUse(
  name: string,
  used: number,
  quota: number | null,
  shown: (amount: number) => string,
): Markup {
  if (quota === null) return html`${shown(used)}, no quota`;
  const percent = quota === 0 ? 100 : Math.floor((used / quota) * 100);
  return html`<progress max="${Math.max(1, quota)}" value="${quota === 0 ? 1 : Math.min(used, quota)}" aria-label="${name}">${percent} %</progress> ${shown(used)} of ${shown(quota)} (${percent} %)`;
}

const counted = (amount: number) => amount.toLocaleString('en-US');

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

function sizeText(bytes: number): string {
  const unit = bytes < 1_024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  const size = bytes / 1_024 ** unit;
  return `${size.toLocaleString('en-US', { maximumFractionDigits: unit === 0 ? 0 : 1 })} ${UNITS[unit]}`;
}

function inForce(own: TenantPolicy, defaults: PolicyDefaults): Markup {
  const effective = effectivePolicy(own, defaults);
  const rows = POLICY_NAMES.map((name) => [
    POLICY_VALUES[name].label,
    amount(name, effective[name]),
    own[name] === null ? html`<span class="faint">installation</span>` : 'own value',
  ]);
  return dataTable('Values in force', ['What', 'In force', { label: 'From', kind: 'narrow' }], rows);
}

function amount(name: PolicyName, value: number | null): string {
  if (value === null) return 'no limit';
  const { unit } = POLICY_VALUES[name];
  return unit === 'bytes' ? sizeText(value) : `${counted(value)} ${unit}`;
}

function valueField(
  name: PolicyName,
  { own, given, error, defaults }: Omit<Shown, 'place'> & { own: TenantPolicy; defaults: PolicyDefaults },
): Markup {
  const { label, about, unit, minimum, maximum } = POLICY_VALUES[name];
  const bound = defaults[name] === 0 ? maximum : Math.min(maximum, defaults[name]);
  const range = `${minimum.toLocaleString('en-US')} to ${bound.toLocaleString('en-US')} ${unit}`;
  return textField({
    ...{ name, type: 'number', label: `${label}, in ${unit}` },
    hint: `${about} ${range}. Leave empty to use the installation’s value.`,
    value: given?.text(name) ?? String(own[name] ?? ''),
    error: error?.param === name ? error.message : null,
  });
}
