import { mailLink, mailPage, mailText } from '../mail/mail-page.ts';
import type { MailContent } from '../mail/mails.ts';
import type { Invitation } from './invitation-store.ts';

type LinkAbout = Pick<Invitation, 'role' | 'businessName' | 'expiresAt'> & {
  /** What the portal calls itself. */
  product: string;
  by: string;
  url: string;
};

export function linkMail({ role, businessName, product, by, url, expiresAt }: LinkAbout): MailContent {
  const { host } = new URL(url);
  const place = businessName === null ? product : `${businessName} at ${product}`;
  const [subject, text] =
    role === null
      ? [`A new password for ${product}`, `${by} made a link by which you set a new password at ${host}.`]
      : [`Invitation to ${place}`, `${by} invites you to ${place} (${host}), as ${role}.`];
  const until = `${expiresAt.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  const once = `The link works once, until ${until}. If you do not expect it, do nothing.`;
  const button = role === null ? 'Set a new password' : 'Accept the invitation';
  return {
    subject,
    text: `${text}\n\n${url}\n\n${once}\n`,
    html: mailPage(`<p>${mailText(text)}</p>\n<p>${mailLink(url, button)}</p>\n<p>${once}</p>`),
  };
}
