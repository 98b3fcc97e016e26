import { Command } from 'commander';
import { OPERATOR_COMMAND } from '../../../platform/audit/audit.ts';
import {
  type AdminOutcome,
  type AdminTools,
  adminAction,
  alignedFields,
  alignedTable,
} from '../../../platform/cli/admin-action.ts';
import type { Config } from '../../../platform/config/config.ts';
import { parseEncryptionKeys } from '../../../platform/crypto/secret-box.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { knownTenant } from '../../accounts/accounts.ts';
import { mailerOf } from '../../mail/mails.ts';
import { setUpPath } from '../first-operator.ts';
import { listInvitations } from '../invitation-store.ts';
import { inviteUser, type LinkTools, type MadeInvitation, withdrawInvitation } from '../invitations.ts';
import { removeMember } from '../members.ts';
import { confirmPassword, makePasswordLink } from '../password-links.ts';
import { resetSecondFactor } from '../second-factor.ts';
import { endSessionsUnder } from '../session-list.ts';
import type { Authority } from '../user-authority.ts';
import { listSessions } from '../user-sessions.ts';
import { listUsers, type User } from '../user-store.ts';
import { disableUser, enableUser, removeUser, userNamed } from '../users.ts';

/** The command line may administer all users. */
const AUTHORITY: Authority = { actor: OPERATOR_COMMAND, tenantId: null, userId: null };

const SHOW_LINK = 'print the link, where links are sent by e-mail (HELIOGRAPH_SMTP_URL)';
const WHO = 'e-mail address, or the id where several accounts have the address';

export function userCommand(): Command {
  return new Command('user')
    .description('people who sign in to the portal')
    .addCommand(setUpLinkCommand())
    .addCommand(listCommand())
    .addCommand(inviteCommand())
    .addCommand(passwordLinkCommand())
    .addCommand(confirmPasswordCommand())
    .addCommand(switchCommand('disable', 'lock a user out, at once and everywhere'))
    .addCommand(switchCommand('enable', 'let a user sign in again'))
    .addCommand(removeCommand())
    .addCommand(sessionsCommand())
    .addCommand(signOutCommand())
    .addCommand(totpResetCommand())
    .addCommand(invitationsCommand())
    .addCommand(withdrawCommand());
}

function setUpLinkCommand(): Command {
  const command = new Command('set-up-link').description(
    'print the link that makes the first operator; it works while there is no user',
  );
  return adminAction(command, 'user set-up-link', async ({ tools }) => {
    const { config, database } = tools;
    refuseWithoutPasswords(config);
    const path = await setUpPath({ database, encryptionKeys: parseEncryptionKeys(config.encryptionKeys) });
    const url = path === null ? null : `${config.api.publicUrl}${path}`;
    const text = url ?? 'There are users already: invite more with admin user invite.';
    return { json: { url }, text, found: url !== null };
  });
}

function listCommand(): Command {
  const command = new Command('list').description('list all users with role, tenants and state');
  return adminAction(command, 'user list', async ({ tools }) => {
    const users = await listUsers(tools.database);
    return {
      json: users.map(describeUser),
      text: alignedTable(
        ['ID', 'E-MAIL', 'NAME', 'ROLE', 'STATE', 'LAST SIGN-IN'],
        users.map((user) => [
          user.id,
          user.email,
          user.name,
          rolesOf(user),
          user.disabledAt === null ? 'active' : 'disabled',
          user.lastSignInAt,
        ]),
        'There are no users yet; make the first operator with the link of: admin user set-up-link',
      ),
    };
  });
}

/** `role` and `tenantId` only for users with one role. */
function describeUser({ memberships, isOperator, ...user }: User): object {
  const [only] = memberships;
  const isOne = memberships.length === 1 && !isOperator;
  return {
    ...user,
    role: isOperator ? 'operator' : isOne ? only?.role : null,
    tenantId: isOne ? Number(only?.tenantId) : null,
    businessName: isOne ? only?.businessName : null,
    isOperator,
    memberships: memberships.map((one) => ({ ...one, tenantId: Number(one.tenantId) })),
  };
}

function rolesOf({ isOperator, memberships }: User): string {
  const roles = memberships.map(
    ({ role, businessName, tenantId, isDisabled }) =>
      `${role} of ${businessName} (${tenantId}${isDisabled ? ', disabled' : ''})`,
  );
  return [...(isOperator ? ['operator'] : []), ...roles].join(', ');
}

function inviteCommand(): Command {
  const command = new Command('invite')
    .description('create a one-time link by which a person becomes a user; it works for seven days')
    .requiredOption('--email <address>', 'who it is for')
    .requiredOption('--role <role>', 'operator, admin or member')
    .option('--tenant <tenantId>', 'whose administrator or member; operators have none')
    .option('--show-link', SHOW_LINK);
  const example = 'user invite --email asha@store.example --role admin --tenant 1';
  return adminAction<{ email: string; role: string; tenant?: string; showLink?: true }>(
    command,
    example,
    async ({ tools, options }) => {
      const { email, role, tenant: tenantId = null } = options;
      return describeLink(
        tools.config,
        await inviteUser(linkTools(tools, options), AUTHORITY, { email, role, tenantId }),
      );
    },
  );
}

function passwordLinkCommand(): Command {
  const command = new Command('password-link')
    .description('make a one-time link by which a user sets a new password; it works for a day')
    .argument('<user>', WHO)
    .option('--show-link', SHOW_LINK);
  const example = 'user password-link asha@store.example';
  return adminAction<{ showLink?: true }>(command, example, async ({ tools, args, options }) => {
    refuseWithoutPasswords(tools.config);
    const { id } = await userNamed(tools, args[0] ?? '');
    return describeLink(tools.config, await makePasswordLink(linkTools(tools, options), AUTHORITY, id));
  });
}

function confirmPasswordCommand(): Command {
  const command = new Command('confirm-password')
    .description('confirm that a password set through a shown link is the user’s own; all sessions end')
    .argument('<user>', WHO);
  return adminAction(command, 'user confirm-password asha@store.example', async ({ tools, args }) => {
    const { id, email } = await userNamed(tools, args[0] ?? '');
    await confirmPassword(tools, AUTHORITY, id);
    return { json: { id, email, state: 'confirmed' }, text: `The password of ${email} is confirmed.` };
  });
}

function refuseWithoutPasswords({ portal }: Config): void {
  if (portal.passwordSignIn) return;
  throw new RequestError(
    'password_sign_in_off',
    'HELIOGRAPH_PORTAL_PASSWORD_SIGN_IN is false: a password would open nothing. Invite the user; the identity provider signs in.',
  );
}

function linkTools(tools: AdminTools, { showLink = false }: { showLink?: boolean }): LinkTools {
  return { ...tools, mailer: showLink ? null : mailerOf(tools.config, tools.secretBox) };
}

function describeLink(
  { api }: Config,
  { email, role, path, isMailed, expiresAt }: MadeInvitation,
): AdminOutcome {
  if (isMailed) {
    return {
      json: { email, role, url: null, expiresAt },
      text: `The link is on its way to ${email} by e-mail.`,
    };
  }
  const url = `${api.publicUrl}${path}`;
  return {
    json: { email, role, url, expiresAt },
    text: [
      alignedFields([
        ['for', email],
        ...(role === null ? [] : ([['role', role]] as const)),
        ['link', url],
        ['expires', expiresAt],
      ]),
      '',
      'Send the link now: it works once and is not shown again.',
    ].join('\n'),
  };
}

function switchCommand(action: 'disable' | 'enable', description: string): Command {
  const command = new Command(action).description(description).argument('<user>', WHO);
  return adminAction(command, `user ${action} asha@store.example`, async ({ tools, args }) => {
    const { id, email } = await userNamed(tools, args[0] ?? '');
    const change = action === 'disable' ? disableUser : enableUser;
    await change(tools, AUTHORITY, id);
    return { json: { email, state: `${action}d` }, text: `${email} is ${action}d.` };
  });
}

function removeCommand(): Command {
  const command = new Command('remove')
    .description('remove an account, or with --tenant only its membership there; it cannot be undone')
    .argument('<user>', WHO)
    .option('--tenant <tenantId>', 'the tenant to remove the user from');
  return adminAction<{ tenant?: string }>(
    command,
    'user remove asha@store.example --tenant 1',
    async ({ tools, args, options: { tenant = null } }) => {
      const { id, email } = await userNamed(tools, args[0] ?? '');
      if (tenant === null) await removeUser(tools, AUTHORITY, id);
      else {
        await knownTenant(tools.database, tenant);
        await removeMember(tools, { ...AUTHORITY, tenantId: tenant }, id);
      }
      const from = tenant === null ? '' : ` from tenant ${tenant}`;
      return {
        json: { id, email, tenantId: numberOrNull(tenant), state: 'removed' },
        text: `${email} is removed${from}.`,
      };
    },
  );
}

function sessionsCommand(): Command {
  const command = new Command('sessions')
    .description('list where a user is signed in')
    .argument('<user>', WHO);
  return adminAction(command, 'user sessions asha@store.example', async ({ tools, args }) => {
    const { id, email } = await userNamed(tools, args[0] ?? '');
    const sessions = await listSessions(tools.database, id);
    return {
      json: sessions,
      text: alignedTable(
        [
          'ID',
          'BEGUN BY',
          'SECOND FACTOR',
          'PASSWORD LINK BY',
          'ADDRESS',
          'SIGNED IN',
          'LAST USED',
          'BROWSER',
        ],
        sessions.map((one) => [
          one.id,
          one.begunBy,
          one.hasSecondFactor ? 'yes' : 'no',
          one.passwordLinkBy,
          one.ip,
          one.createdAt,
          one.lastSeenAt,
          one.userAgent,
        ]),
        `${email} is signed in nowhere.`,
      ),
    };
  });
}

function signOutCommand(): Command {
  const command = new Command('sign-out')
    .description('end the sessions of a user, at once')
    .argument('<user>', WHO)
    .option('--session <id>', 'only this one, as admin user sessions lists it');
  return adminAction<{ session?: string }>(
    command,
    'user sign-out asha@store.example',
    async ({ tools, args, options: { session = null } }) => {
      const { id, email } = await userNamed(tools, args[0] ?? '');
      const ended = await endSessionsUnder(tools, AUTHORITY, id, session);
      return { json: { id, email, ended }, text: `${email}: sessions ended: ${ended}.` };
    },
  );
}

function totpResetCommand(): Command {
  const command = new Command('totp-reset')
    .description('remove the second factor of a user who has lost it; all sessions end')
    .argument('<user>', WHO);
  return adminAction(command, 'user totp-reset asha@store.example', async ({ tools, args }) => {
    const { id, email } = await userNamed(tools, args[0] ?? '');
    await resetSecondFactor(tools, AUTHORITY, id);
    return { json: { id, email, state: 'reset' }, text: `${email} signs in without a second factor now.` };
  });
}

function invitationsCommand(): Command {
  const command = new Command('invitations').description('list unused links');
  return adminAction(command, 'user invitations', async ({ tools }) => {
    const invitations = await listInvitations(tools.database, null);
    return {
      json: invitations.map(({ makerId: _, ...one }) => ({ ...one, tenantId: numberOrNull(one.tenantId) })),
      text: alignedTable(
        ['ID', 'E-MAIL', 'FOR', 'TENANT', 'MADE BY', 'EXPIRES'],
        invitations.map((one) => [
          one.id,
          one.email,
          one.role ?? 'a new password',
          one.businessName,
          one.invitedBy,
          one.expiresAt,
        ]),
        'No link is open.',
      ),
    };
  });
}

function withdrawCommand(): Command {
  const command = new Command('withdraw')
    .description('end an unused link')
    .argument('<invitation>', 'its id, as admin user invitations lists it');
  return adminAction(command, 'user withdraw 12', async ({ tools, args }) => {
    const id = args[0] ?? '';
    const email = await withdrawInvitation(tools, AUTHORITY, id);
    return { json: { id, email, state: 'withdrawn' }, text: `The link for ${email} does not work any more.` };
  });
}

function numberOrNull(tenantId: string | null): number | null {
  return tenantId === null ? null : Number(tenantId);
}
