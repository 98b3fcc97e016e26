import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The links of the built site that lead to no file or no anchor of it: `page → link`. */
export function brokenLinks(directory: string, base: string): string[] {
  const files = globSync('**/*.html', { cwd: directory });
  const html = new Map(files.map((file) => [file, readFileSync(join(directory, file), 'utf8')] as const));
  const ids = new Map(
    [...html].map(([file, text]) => [
      file,
      new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)),
    ]),
  );
  const targetOf = (path: string): string | null => {
    if (!path.startsWith(base)) return null;
    const name = path.slice(base.length);
    const candidates = [name, `${name}.html`, `${name}index.html`].filter((one) => /\.\w+$/.test(one));
    return candidates.find((one) => existsSync(join(directory, one))) ?? null;
  };
  const isBroken = (file: string, link: string): boolean => {
    const { pathname, hash } = new URL(link.replaceAll('&amp;', '&'), `http://site${base}${file}`);
    const target = targetOf(decodeURI(pathname));
    if (target === null) return true;
    return hash !== '' && ids.get(target)?.has(decodeURIComponent(hash.slice(1))) === false;
  };
  return [...html].flatMap(([file, text]) => {
    const links = [...text.matchAll(/ (?:href|src)="([^"]+)"/g)].map(([, link = '']) => link);
    return [...new Set(links)]
      .filter((link) => !/^(https?|mailto|data):/.test(link))
      .filter((link) => isBroken(file, link))
      .map((link) => `${file} → ${link}`);
  });
}
