import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

/** Where style sheets, scripts and pictures of the portal lie. */
export const ASSET_DIRECTORY = new URL('./assets/', import.meta.url);
export const ASSET_PREFIX = '/portal/assets/';

/** Each file's URL names its content, so that browsers may keep it for good and never mix two releases. */
const urls = new Map(
  readdirSync(ASSET_DIRECTORY).map((name) => {
    const content = readFileSync(new URL(name, ASSET_DIRECTORY));
    const version = createHash('sha256').update(content).digest('hex').slice(0, 12);
    return [name, `${ASSET_PREFIX}${name}?v=${version}`];
  }),
);

/** The URL of a file in `assets`. Throws for one that is not there: a mistake that no user should meet. */
export function assetUrl(name: string): string {
  const url = urls.get(name);
  if (url === undefined) throw new Error(`there is no asset ${name}`);
  return url;
}
