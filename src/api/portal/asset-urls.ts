import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

export const ASSET_DIRECTORY = new URL('./assets/', import.meta.url);
export const ASSET_PREFIX = '/portal/assets/';

/** The URL of a file in `assets`. Throws for an unknown name. */
export const assetUrl = createAssetUrls(ASSET_DIRECTORY, ASSET_PREFIX);

/** Each URL names the content of its file, so that browsers may keep it for good and never mix two releases. */
export function createAssetUrls(directory: URL, prefix: string): (name: string) => string {
  const urls = new Map(
    readdirSync(directory).map((name) => {
      const content = readFileSync(new URL(name, directory));
      const version = createHash('sha256').update(content).digest('hex').slice(0, 12);
      return [name, `${prefix}${name}?v=${version}`];
    }),
  );
  return (name) => {
    const url = urls.get(name);
    if (url === undefined) throw new Error(`there is no asset ${name}`);
    return url;
  };
}
