import { Command } from 'commander';
import { adminAction } from '../../platform/cli/admin-action.ts';
import { alignedFields } from '../../platform/cli/aligned-text.ts';
import { rotateSecret } from '../endpoint-secrets.ts';
import { endpointForOperator } from '../endpoints.ts';
import { parseNumber } from './endpoint-options.ts';
import { readStdin } from './endpoint-stdin.ts';

type RotateOptions = { overlapHours: number; secretStdin?: true };

/** `admin endpoint rotate-secret` */
export function endpointRotateSecretCommand(): Command {
  const command = new Command('rotate-secret')
    .description(
      'give an endpoint another signing secret and print it; the present one signs too for a while',
    )
    .argument('<id>')
    .option(
      '--overlap-hours <hours>',
      'how long both sign, 0 to 168; the secret before the present one ends at once',
      parseNumber,
      24,
    )
    .option('--secret-stdin', "read the new secret from standard input: the tenant's own, whsec_ and base64");
  const example = 'endpoint rotate-secret 3 --overlap-hours 48 --json';
  return adminAction<RotateOptions>(command, example, async ({ tools, args, options }) => {
    const { id, wabaId } = await endpointForOperator(tools, args[0] ?? '');
    const { overlapHours, secretStdin } = options;
    const rotated = await rotateSecret(tools, wabaId, id, {
      overlapHours,
      ...(secretStdin && { secret: (await readStdin()).trim() }),
    });
    const until = rotated.previousSecretExpiresAt;
    return {
      json: rotated,
      text: alignedFields([
        ['id', rotated.id],
        ['secret', rotated.secret],
        ['old secret', until === null ? 'ended' : `signs too until ${until.toISOString()}`],
      ]),
    };
  });
}
