import { checkAccent, darkAccent } from '../../../features/accounts/accent-colour.ts';
import { findLogo } from '../../../features/accounts/brands.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown, pageNotFound } from '../access/page-error.ts';
import { download } from '../kits/view-page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

/** The name of a file is of its content, so that browsers may keep it for good. */
const KEPT = 'public, max-age=31536000, immutable';

/** GET /portal/brand/:file: a logo by its hash, and the style sheet of a colour. Pages name those of their brand only. */
export function brandFiles(app: PortalApp, context: PortalContext): void {
  download(app, context, {
    path: '/portal/brand/:file',
    access: PAGES.open,
    send: async (visit) => {
      const { reply } = visit;
      const file = visit.param('file');
      const [, colour] = /^accent-([0-9a-f]{6})\.css$/.exec(file) ?? [];
      if (colour !== undefined) {
        const css = await orShown(
          async () => accentCss(`#${colour}`),
          () => null,
        );
        if (css === null) throw pageNotFound();
        return reply.header('cache-control', KEPT).type('text/css; charset=utf-8').send(css);
      }
      const logo = /^[0-9a-f]{64}$/.test(file) ? await findLogo(context.database, file) : null;
      if (logo === null) throw pageNotFound();
      return reply.header('cache-control', KEPT).type(logo.type).send(logo.bytes);
    },
  });
}

function accentCss(colour: string): string {
  checkAccent(colour);
  return `:root {\n  --accent: light-dark(${colour}, ${darkAccent(colour)});\n}\n`;
}
