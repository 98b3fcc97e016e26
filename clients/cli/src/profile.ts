import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Account, accountOf, type Environment, type Given, urlOf } from './account.ts';
import { EXIT, Failure } from './failure.ts';
import { openKeyring } from './keyring.ts';

type Stored = { url: string; apiKey?: string; inKeyring?: true };

/** Where a session of `listen` was, by account and types. */
export type Session = { cursor: string; at: string; secret: string };

function directoryOf(env: Environment): string {
  const base =
    env.XDG_CONFIG_HOME || (process.platform === 'win32' && env.APPDATA) || join(homedir(), '.config');
  return env.HELIOGRAPH_CONFIG_DIR || join(base, 'heliograph');
}

/** Files of the user: the key (mode 0600) and where sessions of `listen` were. */
export function openProfile(env: Environment, keyring = openKeyring(env)) {
  const directory = directoryOf(env);
  const path = (name: string) => join(directory, name);

  const read = <T>(name: string): T | null => {
    try {
      return JSON.parse(readFileSync(path(name), 'utf8')) as T;
    } catch (error) {
      if ((error as { code?: string }).code === 'ENOENT') return null;
      throw new Failure(EXIT.failed, `${path(name)} cannot be read: ${(error as Error).message}`);
    }
  };
  /** Renamed into place, so that a process that is killed leaves no half of a file. */
  const write = (name: string, value: unknown): void => {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const draft = path(`.${name}.${process.pid}`);
    writeFileSync(draft, JSON.stringify(value), { mode: 0o600 });
    chmodSync(draft, 0o600);
    renameSync(draft, path(name));
  };

  const storedKey = (stored: Stored | null): string | undefined =>
    stored?.inKeyring === true ? keyring.read(stored.url) : stored?.apiKey;

  return {
    /**
     * The account to use: options and environment come before what `login` has stored. Throws Failure without a key.
     */
    account(given: Given): Account {
      const stored = read<Stored>('login.json');
      return accountOf({ given, env, stored, storedKey: () => storedKey(stored) });
    },
    /** The base URL alone. Throws Failure when none is known. */
    url(given: Given): string {
      const url = urlOf({ given, env, stored: read<Stored>('login.json') });
      if (url === null) throw new Failure(EXIT.usage, 'Name the service with --url, or set HELIOGRAPH_URL.');
      return url;
    },
    storedUrl: () => read<Stored>('login.json')?.url,
    /** The key file if others can read it. */
    openFile(): string | null {
      if (process.platform === 'win32') return null;
      try {
        return (statSync(path('login.json')).mode & 0o077) === 0 ? null : path('login.json');
      } catch {
        return null;
      }
    },
    /** Stores the account; returns where the key is. */
    save({ url, apiKey }: Account, useKeyring: boolean): string {
      if (!useKeyring) {
        write('login.json', { url, apiKey });
        return path('login.json');
      }
      if (!keyring.store(url, apiKey)) {
        throw new Failure(
          EXIT.failed,
          `The key ring did not take the key: is ${keyring.program} there, and the key ring unlocked? Without --keyring, the key is stored in a file that only you can read.`,
        );
      }
      write('login.json', { url, inKeyring: true });
      return 'the key ring';
    },
    /** Forgets the account. False: there was none. */
    remove(): boolean {
      const stored = read<Stored>('login.json');
      if (stored?.inKeyring === true) keyring.remove(stored.url);
      rmSync(path('login.json'), { force: true });
      rmSync(path('sessions.json'), { force: true });
      return stored !== null;
    },
    session: (name: string) => read<Record<string, Session>>('sessions.json')?.[name] ?? null,
    saveSession(name: string, session: Session): void {
      write('sessions.json', { ...read<Record<string, Session>>('sessions.json'), [name]: session });
    },
  };
}

export type Profile = ReturnType<typeof openProfile>;
