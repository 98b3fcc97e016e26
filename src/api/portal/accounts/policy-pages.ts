import { findTenant } from '../../../features/accounts/accounts.ts';
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
} from '../../../features/accounts/tenant-policies.ts';
import { readTenantUsage, type TenantUsage } from '../../../features/accounts/tenant-usage.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { percentText } from '../components/percent.ts';
import { dataTable, detailList } from '../components/table.ts';
import type { FormField } from '../kits/form-fields.ts';
import { formPage } from '../kits/form-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

const OF_TENANT = {
  path: '/portal/w/:wabaId/data',
  access: PAGES.admin,
  active: 'data',
  seenBy: PAGES.member,
  load: async (visit: Visit) => await policyOf(visit, visit.waba.tenantId, null),
};
const OF_OPERATOR = {
  path: '/portal/operator/tenants/:id/data',
  access: PAGES.operator,
  active: 'operator/tenants',
  load: async (visit: Visit) => {
    const tenant = await findTenant(visit.context.database, visit.id);
    if (tenant === null) throw pageNotFound();
    return await policyOf(visit, visit.id, tenant.businessName);
  },
  trail: (visit: Visit, { businessName }: Subject) => [
    { label: 'Tenants', href: '/portal/operator/tenants' },
    { label: businessName ?? '', href: visit.at('/portal/operator/tenants/:id') },
  ],
};

/** The values of a tenant: for its administrators under /portal/w/:wabaId/data, for operators with the tenant. */
export function policyPages(app: PortalApp, context: PortalContext): void {
  for (const place of [OF_TENANT, OF_OPERATOR])
    formPage(app, context, {
      ...place,
      title: 'Data and storage',
      lead: 'What is kept, for how long, and how much.',
      done: { saved: 'The values are saved.' },
      above: ({ own, defaults, usage }) =>
        html`${usageView(usage, effectivePolicy(own, defaults))}${inForce(own, defaults)}`,
      heading: 'Own values',
      fields: POLICY_NAMES.map(policyField),
      values: ({ own }) => Object.fromEntries(POLICY_NAMES.map((name) => [name, String(own[name] ?? '')])),
      button: 'Save',
      submit: async (visit, given, { tenantId, settable, defaults }) => {
        const change = settable.map((name) => [name, numberOf(name, given.text(name))]);
        await setTenantPolicy({ ...visit.tools, defaults }, tenantId, Object.fromEntries(change));
        return `${visit.path}?done=saved`;
      },
    });
}

type Subject = Awaited<ReturnType<typeof policyOf>>;

async function policyOf({ context, viewer }: Visit, tenantId: string, businessName: string | null) {
  const isOperator = viewer.role === 'operator';
  return {
    tenantId,
    businessName,
    defaults: policyDefaults(context.config),
    own: await readTenantPolicy(context.database, tenantId),
    usage: await readTenantUsage(context.database, tenantId),
    settable: POLICY_NAMES.filter((name) => isOperator || POLICY_VALUES[name].by === 'tenant'),
  };
}

function policyField(name: PolicyName): FormField<PolicyName, Subject> {
  const { label, about, unit, minimum, maximum } = POLICY_VALUES[name];
  return {
    name,
    type: 'number',
    label: `${label}, in ${unit}`,
    limit: 20,
    isShown: ({ settable }) => settable.includes(name),
    hint: ({ defaults }) => {
      const bound = defaults[name] === 0 ? maximum : Math.min(maximum, defaults[name]);
      return `${about} ${counted(minimum)} to ${counted(bound)} ${unit}. Leave empty to use the installation’s value.`;
    },
  };
}

function numberOf(name: PolicyName, text: string): number | null {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  if (/^\d{1,15}$/.test(trimmed)) return Number(trimmed);
  throw invalidValue(`${POLICY_VALUES[name].label} must be a whole number.`, name);
}

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
  return html`<progress max="${Math.max(1, quota)}" value="${quota === 0 ? 1 : Math.min(used, quota)}" aria-label="${name}">${percentText(percent)}</progress> ${shown(used)} of ${shown(quota)} (${percentText(percent)})`;
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
