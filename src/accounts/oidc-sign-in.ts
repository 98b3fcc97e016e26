import type { Database } from '../database/database.ts';
import { openInvitationsOf, takeInvitation } from '../database/invitations.ts';
import { findUserOfIdentity, type Identity, insertIdentity } from '../database/user-identities.ts';
import { findUser, findUserByEmail, type User } from '../database/users.ts';
import { AccountError } from './account-error.ts';
import { checkDescription } from './account-input.ts';
import { makeInvitedUser } from './invitations.ts';
import { beginSession, type Visitor } from './sign-in.ts';
import { emailOf } from './user-input.ts';

type Tools = { database: Database };

/** What an OpenID provider says of the person who signed in there. */
export type ProvenPerson = Identity & { email: string | null; isEmailVerified: boolean; name: string | null };

/**
 * Signs in whom a provider vouches for and returns the token of a new session: the user who was this person before,
 * else the one with the verified address, else the one whom exactly one invitation makes. It never adds anybody else.
 * Throws AccountError `not_invited`.
 */
export async function signInProven(tools: Tools, person: ProvenPerson, visitor: Visitor): Promise<string> {
  const user = (await knownPerson(tools, person)) ?? (await newPerson(tools, person, visitor));
  if (user.disabledAt !== null) throw notInvited();
  return await beginSession(tools, user, visitor, 'oidc');
}

async function knownPerson({ database }: Tools, person: ProvenPerson): Promise<User | null> {
  const userId = await findUserOfIdentity(database, person);
  return userId === null ? null : await findUser(database, userId);
}

async function newPerson({ database }: Tools, person: ProvenPerson, visitor: Visitor): Promise<User> {
  const email = person.isEmailVerified && person.email !== null ? emailOf(person.email) : null;
  if (email === null) throw notInvited();
  return await database.transaction(async (trx) => {
    let user: User | null = await findUserByEmail(trx, email);
    if (user === null) {
      const [invitation, another] = await openInvitationsOf(trx, email);
      // Of several, the person has to choose by the link.
      if (invitation === undefined || another !== undefined) throw notInvited();
      if (!(await takeInvitation(trx, invitation.id))) throw notInvited();
      const made = { name: personName(person.name) ?? email, passwordHash: null };
      user = await findUser(trx, await makeInvitedUser(trx, invitation, made, visitor));
    }
    // The address may have passed to another person at the provider.
    if (user === null || !(await insertIdentity(trx, user.id, person))) throw notInvited();
    return user;
  });
}

/** A name that cannot be shown is none: nobody is kept out by it. */
function personName(text: string | null): string | null {
  try {
    return checkDescription('The name', text ?? '') || null;
  } catch {
    return null;
  }
}

function notInvited(): AccountError {
  return new AccountError(
    'not_invited',
    'Your identity provider knows you, but nobody has invited this e-mail address here. Ask for an invitation.',
  );
}
