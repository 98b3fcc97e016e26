import type { PortalApp } from '../../src/api/portal/portal-app.ts';

/** A file of a form, whole in memory. */
export type FormFile = { filename: string; mimeType: string; bytes: Buffer };

/** The largest form with a file that is read. */
const MAX_UPLOAD_BYTES = 16 * 1024 * 1024;

/** Lets a scope take forms with files: each field is text or a FormFile. Files that were not chosen are left out. */
export function takeMultipartForms(scope: PortalApp): void {
  scope.addContentTypeParser(
    'multipart/form-data',
    { parseAs: 'buffer', bodyLimit: MAX_UPLOAD_BYTES },
    async (request: { headers: { 'content-type'?: string | undefined } }, body: Buffer) =>
      await readForm(body, request.headers['content-type'] ?? ''),
  );
}

async function readForm(body: Buffer, contentType: string): Promise<Record<string, string | FormFile>> {
  const headers = { 'content-type': contentType };
  const form = await new Response(new Uint8Array(body), { headers }).formData().catch((error: unknown) => {
    throw Object.assign(new Error('The form is not complete.', { cause: error }), { statusCode: 400 });
  });
  const fields: Record<string, string | FormFile> = Object.create(null);
  for (const [name, value] of form) {
    if (typeof value === 'string') fields[name] = value;
    else if (value.size > 0) {
      const bytes = Buffer.from(await value.arrayBuffer());
      fields[name] = { filename: value.name, mimeType: value.type, bytes };
    }
  }
  return { ...fields };
}
