import { randomUUID } from 'node:crypto';
import { Command } from 'commander';
import { adminAction } from '../../../platform/cli/admin-action.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { checkEmail } from '../email-address.ts';
import { mailPage, mailText } from '../mail-page.ts';
import { makeMailSender } from '../smtp.ts';

export function mailCommand(): Command {
  return new Command('mail').description('e-mails of the installation').addCommand(testCommand());
}

function testCommand(): Command {
  const command = new Command('test')
    .description('send an e-mail at once and print the response of the mail server')
    .argument('<address>', 'who gets it');
  return adminAction(command, 'mail test you@example.com', async ({ tools, args }) => {
    const { mail, api } = tools.config;
    const recipient = checkEmail(args[0] ?? '');
    if (mail.smtpUrl === '') {
      throw new RequestError('no_mail_server', 'HELIOGRAPH_SMTP_URL is not set: no e-mail is sent.');
    }
    const text = `Heliograph at ${api.publicUrl} can send e-mails.`;
    const html = mailPage(`<p>${mailText(text)}</p>`);
    const subject = 'Test of Heliograph';
    const outcome = await makeMailSender(mail).send({ id: randomUUID(), recipient, subject, text, html });
    if (outcome.kind === 'sent') {
      return { json: { recipient, ...outcome }, text: `The mail server took it: ${outcome.reply}` };
    }
    const verb = outcome.kind === 'refused' ? 'refuses it' : 'did not take it';
    throw new RequestError('mail_not_sent', `The mail server ${verb}: ${outcome.reason}`);
  });
}
