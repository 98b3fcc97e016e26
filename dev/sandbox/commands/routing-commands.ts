import { Command, Option } from 'commander';
import { DEMO_PHONE_NUMBER_ID } from '../demo-accounts.ts';
import { ROUTING_ROLES } from '../routing-roles.ts';
import { type CommandEnvironment, sandboxAction } from './sandbox-action.ts';

type SetOptions = { role?: string[]; standby?: boolean; phone?: string };

const phoneOption = () =>
  new Option('--phone <id>', `phone number id of the business, ${DEMO_PHONE_NUMBER_ID} unless given`);

function setCommand(environment: CommandEnvironment): Command {
  const command = new Command('set')
    .description('other responders share a number; without --role your app has no role there')
    .addOption(new Option('--role <role...>', 'what your app may do').choices(ROUTING_ROLES))
    .option('--standby', 'your app gets copies of what others have')
    .addOption(phoneOption());
  const example = 'routing set --role customer_service calls';
  return sandboxAction<SetOptions>(command, environment, example, async ({ client, options }) => {
    const { role: roles = [], standby: isStandby = false, phone: phoneNumberId } = options;
    const json = await client.post('/sandbox/routing', { phoneNumberId, roles, isStandby });
    const named = roles.length === 0 ? 'no role' : `the roles ${roles.join(', ')}`;
    return { json, text: `your app has ${named} for ${json.phoneNumberId}`, ok: true };
  });
}

function clearCommand(environment: CommandEnvironment): Command {
  const command = new Command('clear')
    .description('no other responder shares the number')
    .addOption(phoneOption());
  const example = 'routing clear';
  return sandboxAction<SetOptions>(command, environment, example, async ({ client, options: { phone } }) => {
    const query = phone === undefined ? '' : `?phoneNumberId=${encodeURIComponent(phone)}`;
    const json = await client.delete(`/sandbox/routing${query}`);
    return { json, text: `no other responder shares ${json.phoneNumberId}`, ok: true };
  });
}

/** `routing set|clear`. */
export function routingCommand(environment: CommandEnvironment): Command {
  const command = new Command('routing').description(
    'share a number with other responders (Conversation Routing)',
  );
  command.addCommand(setCommand(environment));
  command.addCommand(clearCommand(environment));
  return command.addHelpText('after', '\nExample:\n  npm run sandbox -- routing set --role escalation');
}
