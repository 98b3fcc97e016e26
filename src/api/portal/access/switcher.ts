import { html, type Markup, nothing } from '../markup.ts';
import { csrfField } from './csrf-field.ts';
import type { Viewer } from './viewer.ts';

type Place = Viewer['places'][number];

/** How a place is called: the tenant, or the operator's pages. */
export function placeName({ businessName }: Pick<Place, 'businessName'>): string {
  return businessName ?? 'All tenants';
}

/**
 * By which somebody who belongs to several tenants goes to another one; nothing for everybody else. `isNamed`: the page
 * says already which tenant it is of.
 */
export function tenantSwitcher(viewer: Viewer, isNamed: boolean): Markup {
  const { places, tenantId } = viewer;
  const here = places.find((place) => place.tenantId === tenantId);
  if (places.length < 2 || here === undefined) return nothing;
  const others = places.filter((place) => place !== here);
  return html`<details class="switcher"><summary>${isNamed ? 'Switch tenant' : placeName(here)}</summary>
<form method="post" action="/portal/tenant">${csrfField(viewer)}<p class="hint">From ${placeName(here)} to</p>${others.map(placeButton)}</form></details>`;
}

function placeButton(place: Place): Markup {
  return html`<button class="plain" name="tenant" value="${place.tenantId ?? ''}"><strong>${placeName(place)}</strong> <span class="role">${place.role}</span></button>`;
}
