import { wrongUsage } from './failure.ts';
import { webUrl } from './web-url.ts';

/** Whether a host of a parsed URL is this machine: nobody is on the way to it. */
function isThisMachine(hostname: string): boolean {
  return /^(localhost|[^.]+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}

/** An address as a URL. Throws Failure with one sentence that names `source`. */
export function addressOf(text: string, source: string, example: string): URL {
  const shown = `${source} ${JSON.stringify(text)}`;
  if (/\s|^["'<]|["'>]$/.test(text)) {
    throw wrongUsage(`${shown} has a space, a line break or a quote too many: write it as ${example}.`);
  }
  const url = webUrl(text);
  if (url !== null) return url;
  const completed = withScheme(text);
  throw wrongUsage(
    completed === null
      ? `${shown} is no URL that begins with https:// or http://: write it as ${example}.`
      : `${shown} has no ${completed.slice(0, completed.indexOf('/'))}// before it: write ${completed}.`,
  );
}

/** The base URL of a service, without a slash at its end. Throws Failure with one sentence that names `source`. */
export function serviceUrl(text: string, source: string): string {
  const shown = `${source} ${JSON.stringify(text)}`;
  const url = addressOf(text, source, 'https://gateway.example');
  if (`${url.username}${url.password}${url.search}${url.hash}` !== '') {
    throw wrongUsage(`${source} must be a URL such as https://gateway.example, without a user, "?" or "#".`);
  }
  if (url.protocol === 'http:' && !isThisMachine(url.hostname)) {
    throw wrongUsage(`${shown} begins with http://, where others can read the API key: write https://.`);
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

/** What is meant by a host without a scheme; null when it is no host either. */
function withScheme(text: string): string | null {
  const url = /^[a-z]+:\/\//i.test(text) ? null : webUrl(`https://${text}`);
  if (url === null || url.hostname === '' || url.username !== '') return null;
  return `${isThisMachine(url.hostname) ? 'http' : 'https'}://${text}`;
}
