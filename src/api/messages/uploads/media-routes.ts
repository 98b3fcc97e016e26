import multipart from '@fastify/multipart';
import type { ExternalApp, ExternalContext } from '../../external/external-app.ts';
import { deleteMedia, getMedia } from './get-media.ts';
import { uploadMedia } from './upload-media.ts';

/** Everything about files to send. Forms are read in a scope of their own: no other route takes them. */
export function mediaRoutes(app: ExternalApp, context: ExternalContext): void {
  getMedia(app, context);
  deleteMedia(app, context);
  app.register(async (forms: ExternalApp) => {
    forms.removeAllContentTypeParsers();
    await forms.register(multipart, { throwFileSizeLimit: false });
    uploadMedia(forms, context);
  });
}
