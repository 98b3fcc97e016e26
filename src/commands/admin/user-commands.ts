import { Command } from 'commander';
import { OPERATOR_COMMAND } from '../../accounts/audit.ts';
import { setUpPath } from '../../accounts/first-operator.ts';
import { inviteUser, type MadeInvitation, makePasswordLink } from '../../accounts/invitations.ts';
import type { Authority } from '../../accounts/user-authority.ts';
import { allUsers, disableUser, enableUser, userByEmail } from '../../accounts/users.ts';
import type { Config } from '../../config/config.ts';
import { parseEncryptionKeys } from '../../domain/secret-box.ts';
import { type AdminOutcome, adminAction } from './admin-action.ts';
import { alignedFields, alignedTable } from './aligned-text.ts';

/** Whoever may run commands may administer everybody. */
const AUTHORITY: Authority = { actor: OPERATOR_COMMAND, tenantId: null, userId: null };

/** `admin user …` */
export function userCommand(): Command {
  return new Command('user')
    .description('people who sign in to the portal')
    .addCommand(setUpLinkCommand())
    .addCommand(listCommand())
    .addCommand(inviteCommand())
    .addCommand(passwordLinkCommand())
    .addCommand(switchCommand('disable', 'lock somebody out, at once and everywhere'))
    .addCommand(switchCommand('enable', 'let somebody sign in again'));
}

function setUpLinkCommand(): Command {
  const command = new Command('set-up-link').description(
    'print the link that makes the first operator; it works while there is no user',
  );
  return adminAction(command, 'user set-up-link', async ({ tools }) => {
    const { config, database } = tools;
    const path = await setUpPath({ database, encryptionKeys: parseEncryptionKeys(config.encryptionKeys) });
    const url = path === null ? null : `${config.api.publicUrl}${path}`;
    const text = url ?? 'There are users already: invite more with admin user invite.';
    return { json: { url }, text, found: url !== null };
  });
}

function listCommand(): Command {
  const command = new Command('list').description('list everybody with role, tenant and state');
  return adminAction(command, 'user list', async ({ tools }) => {
    const users = await allUsers(tools);
    return {
      json: users.map((user) => ({ ...user, tenantId: numberOrNull(user.tenantId) })),
      text: alignedTable(
        ['E-MAIL', 'NAME', 'ROLE', 'TENANT', 'STATE', 'LAST SIGN-IN'],
        users.map((user) => [
          user.email,
          user.name,
          user.role,
          user.businessName,
          user.disabledAt === null ? 'active' : 'disabled',
          user.lastSignInAt,
        ]),
        'There are no users yet; make the first operator with the link of: admin user set-up-link',
      ),
    };
  });
}

function inviteCommand(): Command {
  const command = new Command('invite')
    .description('make a one-time link by which somebody becomes a user; it works for seven days')
    .requiredOption('--email <address>', 'who it is for')
    .requiredOption('--role <role>', 'operator, admin or member')
    .option('--tenant <userId>', 'whose administrator or member; operators have none');
  const example = 'user invite --email asha@store.example --role admin --tenant 1';
  return adminAction<{ email: string; role: string; tenant?: string }>(
    command,
    example,
    async ({ tools, options }) => {
      const { email, role, tenant: tenantId = null } = options;
      return describeLink(tools.config, await inviteUser(tools, AUTHORITY, { email, role, tenantId }));
    },
  );
}

function passwordLinkCommand(): Command {
  const command = new Command('password-link')
    .description('make a one-time link by which a user sets a new password; it works for seven days')
    .argument('<email>');
  return adminAction(command, 'user password-link asha@store.example', async ({ tools, args }) => {
    const { id } = await userByEmail(tools, args[0] ?? '');
    return describeLink(tools.config, await makePasswordLink(tools, AUTHORITY, id));
  });
}

function describeLink({ api }: Config, { email, role, path, expiresAt }: MadeInvitation): AdminOutcome {
  const url = `${api.publicUrl}${path}`;
  return {
    json: { email, role, url, expiresAt },
    text: [
      alignedFields([
        ['for', email],
        ['role', role],
        ['link', url],
        ['expires', expiresAt],
      ]),
      '',
      'Send the link now: it works once and is not shown again.',
    ].join('\n'),
  };
}

function switchCommand(action: 'disable' | 'enable', description: string): Command {
  const command = new Command(action).description(description).argument('<email>');
  return adminAction(command, `user ${action} asha@store.example`, async ({ tools, args }) => {
    const { id, email } = await userByEmail(tools, args[0] ?? '');
    const change = action === 'disable' ? disableUser : enableUser;
    await change(tools, AUTHORITY, id);
    return { json: { email, state: `${action}d` }, text: `${email} is ${action}d.` };
  });
}

function numberOrNull(tenantId: string | null): number | null {
  return tenantId === null ? null : Number(tenantId);
}
