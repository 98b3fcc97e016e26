import type { DocumentedOperation } from '../../test/support/openapi-document.ts';

const CONTINUED = ' \\\n  ';

/** A request with curl, with the examples of the document. */
export function curlOf({ method, path, parameters, security, requestBody }: DocumentedOperation): string {
  const address = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => {
    return encodeURIComponent(
      String(parameters.find((parameter) => parameter.name === name)?.example ?? name),
    );
  });
  const [[type, media] = []] = Object.entries(requestBody?.content ?? {});
  const parts = [`curl -s${method === 'GET' ? '' : ` -X ${method}`} "$HELIOGRAPH_URL${address}"`];
  const key = path.startsWith('/api/platform/') ? '$HELIOGRAPH_PLATFORM_KEY' : '$HELIOGRAPH_API_KEY';
  if (security?.length !== 0) parts.push(`-H "Authorization: Bearer ${key}"`);
  if (type === 'multipart/form-data') parts.push('-F "file=@picture.jpg;type=image/jpeg"');
  else if (media !== undefined) {
    const [example] = Object.values(media.examples ?? {});
    parts.push("-H 'Content-Type: application/json'");
    parts.push(`-d '${JSON.stringify(example?.value ?? {}).replaceAll("'", "'\\''")}'`);
  }
  return parts.join(CONTINUED);
}
