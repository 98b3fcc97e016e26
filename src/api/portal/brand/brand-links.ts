export function accentHref(colour: string): string {
  return `/portal/brand/accent-${colour.slice(1)}.css`;
}

export function logoHref(hash: string): string {
  return `/portal/brand/${hash}`;
}
