import { Command } from 'commander';
import { DEMO_PHONE_NUMBER_ID } from '../demo-accounts.ts';
import { type CommandEnvironment, sandboxAction, webhookOutcome } from './sandbox-action.ts';

type CreateOptions = { phone?: string; member?: string[]; description?: string };
type ChangeOptions = { member?: string[]; subject?: string };

const collect = (digits: string, earlier: string[] = []) => [...earlier, digits.replace(/\D/g, '')];

function createCommand(environment: CommandEnvironment): Command {
  const command = new Command('create')
    .description('make a group of a number of the business')
    .argument('<subject>', 'its subject')
    .option('--member <digits>', 'who joins it; may be repeated', collect)
    .option('--description <text>', 'its description')
    .option('--phone <id>', `phone number id of the business, ${DEMO_PHONE_NUMBER_ID} unless given`);
  const example = 'group create "Trip to Lisbon" --member 12025550143';
  return sandboxAction<CreateOptions>(command, environment, example, async ({ client, args, options }) => {
    const answer = await client.post('/sandbox/groups', {
      subject: args.join(' '),
      ...(options.member === undefined ? {} : { members: options.member }),
      ...(options.description === undefined ? {} : { description: options.description }),
      ...(options.phone === undefined ? {} : { phoneNumberId: options.phone }),
    });
    return webhookOutcome('a new group', answer);
  });
}

const CHANGES = {
  join: 'let customers join a group',
  leave: 'let members leave a group',
  rename: 'give a group another subject',
  suspend: 'block a group, as the platform does',
  release: 'release a group that is blocked',
  delete: 'delete a group',
} as const;

function changeCommand(action: keyof typeof CHANGES, environment: CommandEnvironment): Command {
  const command = new Command(action).description(CHANGES[action]).argument('<id>', 'id of the group');
  const isOfMembers = action === 'join' || action === 'leave';
  if (isOfMembers) command.requiredOption('--member <digits>', 'who; may be repeated', collect);
  if (action === 'rename') command.requiredOption('--subject <text>', 'the new subject');
  const rest = isOfMembers ? ' --member 12025550143' : action === 'rename' ? ' --subject "Porto"' : '';
  const example = `group ${action} Y2FwaV9ncm91cDoxMjAyNTU1MDEwMDoxMjAzZD${rest}`;
  return sandboxAction<ChangeOptions>(command, environment, example, async ({ client, args, options }) => {
    const answer = await client.post(`/sandbox/groups/${encodeURIComponent(args[0] ?? '')}`, {
      action,
      ...(options.member === undefined ? {} : { members: options.member }),
      ...(options.subject === undefined ? {} : { subject: options.subject }),
    });
    return webhookOutcome(`group ${action}`, answer);
  });
}

/** The commands about groups. */
export function groupCommand(environment: CommandEnvironment): Command {
  const command = new Command('group').description('make groups, and let customers join and leave them');
  command.addCommand(createCommand(environment));
  for (const action of Object.keys(CHANGES) as (keyof typeof CHANGES)[]) {
    command.addCommand(changeCommand(action, environment));
  }
  return command;
}
