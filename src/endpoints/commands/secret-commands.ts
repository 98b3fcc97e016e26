import { Command } from 'commander';
import { adminAction, alignedFields } from '../../platform/cli/admin-action.ts';
import { parseNumber, readStdin } from '../../platform/cli/given-text.ts';
import { rotateSecret, rotateSigningKey } from '../endpoint-secrets.ts';
import { endpointForOperator } from '../endpoints.ts';

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
    return {
      json: rotated,
      text: alignedFields([
        ['id', rotated.id],
        ['secret', rotated.secret],
        ['old secret', untilText(rotated.previousSecretExpiresAt)],
      ]),
    };
  });
}

/** `admin endpoint rotate-signing-key` */
export function endpointRotateSigningKeyCommand(): Command {
  const command = new Command('rotate-signing-key')
    .description('give an endpoint with a public-key signature another key pair and print the public key')
    .argument('<id>')
    .option('--overlap-hours <hours>', 'how long the present key signs too, 0 to 168', parseNumber, 24);
  const example = 'endpoint rotate-signing-key 3 --overlap-hours 48 --json';
  return adminAction<{ overlapHours: number }>(command, example, async ({ tools, args, options }) => {
    const { id, wabaId } = await endpointForOperator(tools, args[0] ?? '');
    const rotated = await rotateSigningKey(tools, wabaId, id, options);
    return {
      json: rotated,
      text: alignedFields([
        ['id', rotated.id],
        ['public key', rotated.publicKey],
        ['old key', untilText(rotated.previousKeyExpiresAt)],
      ]),
    };
  });
}

/** What holds of the secret or key before the present one. */
export function untilText(until: Date | null): string {
  return until === null ? 'ended' : `signs too until ${until.toISOString()}`;
}
