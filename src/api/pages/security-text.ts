import type { FastifyInstance } from 'fastify';
import type { Config } from '../../platform/config/config.ts';

const SECURITY_TEXT_PATH = '/.well-known/security.txt';

/** A scanner that kept the text longer asks again; RFC 9116 §2.5.5 wants less than a year. */
const VALID_DAYS = 180;
const DAY_MS = 86_400_000;

/** RFC 9116: whom to tell of a weakness in this installation. Without a contact there is no such file. */
export function securityText(
  scope: FastifyInstance,
  { securityContacts, publicUrl }: Pick<Config['api'], 'securityContacts' | 'publicUrl'>,
): void {
  if (securityContacts.length === 0) return;
  scope.get(SECURITY_TEXT_PATH, (_request, reply) => {
    const today = Math.floor(Date.now() / DAY_MS);
    const lines = [
      ...securityContacts.map((contact) => `Contact: ${contact}`),
      `Expires: ${new Date((today + VALID_DAYS) * DAY_MS).toISOString()}`,
      'Preferred-Languages: en',
      `Canonical: ${publicUrl}${SECURITY_TEXT_PATH}`,
    ];
    return reply
      .header('cache-control', 'public, max-age=3600')
      .type('text/plain; charset=utf-8')
      .send(`${lines.join('\n')}\n`);
  });
}
