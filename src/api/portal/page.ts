import type { Brand } from '../../features/accounts/brands.ts';
import type { RequestError } from '../../platform/request-input.ts';
import { mayUse } from './access/link-access.ts';
import { isOperatorElsewhere, type Viewer } from './access/viewer.ts';
import { assetUrl } from './asset-urls.ts';
import { accentHref, logoHref } from './brand/brand-links.ts';
import { type Notice, noticeBox } from './components/notice.ts';
import { exactTime } from './components/time.ts';
import { type Child, html, type Markup, nothing } from './markup.ts';
import {
  type NavigationEntry,
  operatorNavigation,
  operatorWay,
  SANDBOX_ENTRY,
  tenantNavigation,
  tenantSwitcher,
  type WabaInView,
  wabaNavigation,
} from './navigation.ts';
import { ownerNotices } from './users/session-table.ts';

export type PageView = {
  title: string;
  /** Who is signed in; null on the pages before the sign-in. */
  viewer?: Viewer | null;
  waba?: WabaInView | null;
  /** The WABAs of a tenant with several, where the page is about all of them. */
  wabaIds?: readonly string[];
  /** The entry of the navigation that leads here: `endpoints`, `operator/health`. */
  active?: string;
  lead?: Child;
  actions?: Child;
  /** The way back, outermost first. */
  trail?: readonly { label: string; href: string }[];
  notice?: Notice | null;
  /** Why a form on it was refused: the status of the response says so too. */
  error?: RequestError | null;
  /** Notices after a redirect, by the code in `?done=`. */
  done?: Readonly<Record<string, Child>>;
  body: Child;
  /** What the bell counts; null: it counts nothing here. */
  newAlerts?: number | null;
  /** Requests for keys that an operator decides on. */
  pendingApprovals?: number;
  hasSandbox?: boolean;
  /** Null: ours. */
  brand?: Brand | null;
  /** More style sheets and scripts: names of files in `assets`, or URLs. */
  assets?: readonly string[];
};

export function renderPage(view: PageView & { viewer: Viewer | null }): string {
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${view.title} · ${brandName(view)}</title>
${icon(view)}
<link rel="stylesheet" href="${assetUrl('portal.css')}">
${view.brand?.accentColor && html`<link rel="stylesheet" href="${accentHref(view.brand.accentColor)}">`}
${assetLinks(view.assets ?? [])}
<script src="${assetUrl('portal.js')}" defer></script>
</head>
${view.viewer === null ? signedOutBody(view) : signedInBody(view, view.viewer)}
</html>
`;
  return document.toString();
}

function assetLinks(assets: readonly string[]): Markup[] {
  const urls = assets.map((asset) => (asset.startsWith('/') ? asset : assetUrl(asset)));
  return urls.map((url) =>
    url.includes('.css?')
      ? html`<link rel="stylesheet" href="${url}">`
      : html`<script src="${url}" defer></script>`,
  );
}

function signedOutBody(view: PageView): Markup {
  return html`<body class="signed-out">
<main id="main">
<p class="brand">${brand(view)}</p>
<div class="card">
<h1>${view.title}</h1>
${view.lead && html`<p class="lead">${view.lead}</p>`}
${view.notice && noticeBox(view.notice)}
${view.body}
</div>
</main>
</body>`;
}

function signedInBody(view: PageView, viewer: Viewer): Markup {
  return html`<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<a class="brand" href="/portal">${brand(view)}</a>
${view.waba && wabaInView(view.waba)}
${!isOperatorElsewhere(viewer) && mayUse(viewer.link, 'GET', '/portal/alerts') && bell(view.newAlerts ?? 0)}
<input type="checkbox" id="menu" class="menu-switch" aria-label="Show the menu"><label for="menu" class="menu-label">Menu</label>
${tenantSwitcher(viewer, Boolean(view.waba))}
<nav class="account" aria-label="Account">
${whoIsHere(viewer)}
<form method="post" action="/portal/sign-out"><input type="hidden" name="_csrf" value="${viewer.csrfToken}"><button class="plain">Sign out</button></form>
</nav>
</header>
${isOperatorInside(view, viewer) && operatorBanner(view.waba)}
<div class="frame">
${sideNavigation(view, viewer)}
<main id="main" tabindex="-1">
${passwordNotice(viewer)}
${ownerNotices(viewer)}
${trail(view)}
<div class="heading">
<h1>${view.title}</h1>
${view.actions && html`<div class="actions">${view.actions}</div>`}
</div>
${view.lead && html`<p class="lead">${view.lead}</p>`}
${view.notice && noticeBox(view.notice)}
${view.body}
</main>
</div>
</body>`;
}

/** The account of a portal link has no page: its product has it. */
function whoIsHere({ name, email, role, link }: Viewer): Markup {
  const who = html`<span class="who">${name || email}</span> <span class="role">${role}</span>`;
  if (link === null) return html`<a href="/portal/account">${who}</a>`;
  const { returnUrl } = link;
  return html`<span>${who}</span>${returnUrl !== null && html` <a href="${returnUrl}" target="_top" rel="noopener">Back to ${new URL(returnUrl).host}</a>`}`;
}

function isOperatorInside(
  view: PageView,
  { role, isOperatorAddress }: Viewer,
): view is PageView & { waba: WabaInView } {
  return role === 'operator' && isOperatorAddress && Boolean(view.waba);
}

/** What an operator changes in a tenant is easily taken for the operator's own. */
function operatorBanner({ businessName }: WabaInView): Markup {
  return html`<p class="operator-banner">You act as an operator in <strong>${businessName}</strong>. The audit log of the tenant shows what you read and change. <a href="/portal/operator/tenants">Leave the tenant</a></p>`;
}

function bell(count: number): Markup {
  const shown = count < 100 ? String(count) : '99+';
  const label = count === 0 ? 'Alerts' : `Alerts, ${shown} new`;
  return html`<a class="bell" href="/portal/alerts" aria-label="${label}" title="${label}"><svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" focusable="false"><path fill="currentColor" d="M10 18a2.2 2.2 0 0 0 2.1-1.6H7.900A2.200 2.200 0 0 0 10 18Zm6.200-4.700c-.9-.9-1.200-1.900-1.200-4.300 0-2.600-1.500-4.500-3.700-5V3.300a1.300 1.300 0 0 0-2.600 0V4C6.500 4.500 5 6.400 5 9c0 2.400-.3 3.400-1.200 4.300-.5.5-.2 1.500.7 1.500h11c.9 0 1.200-1 .7-1.500Z"/></svg>${count > 0 && html`<span class="count">${shown}</span>`}</a>`;
}

/** Until the owner has chosen a password that no one else knows. */
function passwordNotice({ passwordLink, passwordLinkBy }: Viewer): Markup {
  if (passwordLink === null) return nothing;
  const end =
    passwordLinkBy === null
      ? html`<a href="/portal/account#password">Choose a password</a> that only you know.`
      : html`If you did, <a href="/portal/account#password">choose another one</a> that only you know, and ask an operator to confirm it.`;
  const { by, at } = passwordLink;
  const text = html`Your password was set through a link made by ${by} on ${exactTime(new Date(at))}. If you did not set it yourself, tell an operator. ${end}`;
  return noticeBox({ kind: 'warning', text });
}

function brandName({ brand: own }: PageView): string {
  return own?.name ?? 'Heliograph';
}

function icon({ brand: own }: PageView): Markup {
  if (own?.logoHash) return html`<link rel="icon" href="${logoHref(own.logoHash)}">`;
  return html`<link rel="icon" href="${assetUrl('heliograph.svg')}" type="image/svg+xml">`;
}

/** A brand without a logo has its name alone: our sign is not its own. */
function brand(view: PageView): Markup {
  const { name = null, logoHash = null } = view.brand ?? {};
  const src = logoHash !== null ? logoHref(logoHash) : name === null ? assetUrl('heliograph.svg') : null;
  return html`${src !== null && html`<img src="${src}" alt="" height="24">`} <span class="brand-name">${brandName(view)}</span>`;
}

function wabaInView({ wabaId, businessName }: WabaInView): Markup {
  return html`<a class="waba" href="/portal" title="Choose another WABA"><strong>${businessName}</strong> <span class="mono">${wabaId}</span></a>`;
}

/** Open on wide screens; on a phone the same list behind one button, without a script. */
function sideNavigation(view: PageView, viewer: Viewer): Markup {
  const tenant = view.waba ? tenantNavigation(viewer, view.waba) : [];
  const wabas = wabaNavigation(view.wabaIds ?? []);
  const isOperator = viewer.role === 'operator' && viewer.isOperatorAddress;
  const operator = isOperator ? operatorNavigation(view.pendingApprovals ?? 0) : [];
  const isInside = isOperatorInside(view, viewer);
  const sandbox = view.hasSandbox && mayUse(viewer.link, 'GET', SANDBOX_ENTRY.href) ? [SANDBOX_ENTRY] : [];
  if (tenant.length + wabas.length + operator.length + sandbox.length === 0) return nothing;
  return html`<nav class="side" aria-label="Pages">
${tenant.length > 0 && html`<ul>${tenant.map((entry) => navigationItem(entry, view.active))}</ul>`}
${wabas.length > 0 && html`<h2>WABAs</h2><ul>${wabas.map((entry) => navigationItem(entry, view.active))}</ul>`}
${operator.length > 0 && html`<h2>Operator</h2><ul>${(isInside ? operatorWay(operator) : operator).map((entry) => navigationItem(entry, view.active))}</ul>`}
${sandbox.length > 0 && html`<h2>Development</h2><ul>${sandbox.map((entry) => navigationItem(entry, view.active))}</ul>`}
</nav>`;
}

function navigationItem(
  { key, label, href, count = 0 }: NavigationEntry,
  active: string | undefined,
): Markup {
  const counted =
    count > 0 && html` <span class="count"><span class="unseen">, pending: </span>${count}</span>`;
  return key === active
    ? html`<li><a href="${href}" aria-current="page">${label}${counted}</a></li>`
    : html`<li><a href="${href}">${label}${counted}</a></li>`;
}

function trail({ trail: steps = [], title }: PageView): Markup {
  if (steps.length === 0) return nothing;
  return html`<nav class="trail" aria-label="Way back">${steps.map(({ label, href }) => html`<a href="${href}">${label}</a> <span aria-hidden="true">/</span> `)}<span aria-current="page">${title}</span></nav>`;
}
