import { join } from 'node:path';
import { keptSecret } from './private-file.ts';

/** Somebody who may sign in to the portal of the embedded stack. */
export interface EmbeddedPortalUser {
  readonly email: string;
  readonly name: string;
  readonly role: 'operator' | 'admin';
  readonly password: string;
}

const PASSWORD_BYTES = 12;

/** An operator, and an administrator of the first tenant; their passwords are made once and kept with the data. */
export function embeddedPortalUsers(dataDir: string): EmbeddedPortalUser[] {
  const password = (role: string) => keptSecret(join(dataDir, `portal-password-${role}`), PASSWORD_BYTES);
  return [
    {
      email: 'operator@heliograph.example',
      name: 'Operator',
      role: 'operator',
      password: password('operator'),
    },
    { email: 'admin@store.example', name: 'Store admin', role: 'admin', password: password('admin') },
  ];
}
