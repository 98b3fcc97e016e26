import { spawnSync } from 'node:child_process';

type Environment = Readonly<Record<string, string | undefined>>;

/** Where the desktop keeps secrets of the user: one for each URL of a service. */
export type Keyring = {
  /** False: the key ring does not have the key now. */
  store(url: string, apiKey: string): boolean;
  read(url: string): string | undefined;
  remove(url: string): void;
  /** The program behind it, for messages. */
  program: string;
};

const SERVICE = 'heliograph-cli';
const LABEL = 'Heliograph API key';
const TIMEOUT_MS = 60_000;

/** The key ring of this platform: the Secret Service of Linux desktops, the keychain of macOS, the vault of Windows. */
export function openKeyring(env: Environment, platform: NodeJS.Platform = process.platform): Keyring {
  // Secrets go through the input: arguments are there for everybody to see.
  const run = (program: string, args: readonly string[], input = '') => {
    const options = { input, encoding: 'utf8', timeout: TIMEOUT_MS, env: { ...env } } as const;
    const { status, stdout } = spawnSync(program, args, { ...options, stdio: ['pipe', 'pipe', 'ignore'] });
    return { isDone: status === 0, stdout: stdout ?? '' };
  };
  const keyring =
    platform === 'darwin' ? keychain(run) : platform === 'win32' ? vault(run) : secretService(run);
  return {
    ...keyring,
    // Not every program says by its exit code that the user refused.
    store: (url, apiKey) => keyring.store(url, apiKey) && keyring.read(url) === apiKey,
  };
}

type Run = (program: string, args: readonly string[], input?: string) => { isDone: boolean; stdout: string };

function secretService(run: Run): Keyring {
  const names = (url: string) => ['service', SERVICE, 'url', url];
  return {
    program: 'secret-tool',
    store: (url, apiKey) => run('secret-tool', ['store', '--label', LABEL, ...names(url)], apiKey).isDone,
    read: (url) => secretOf(run('secret-tool', ['lookup', ...names(url)]).stdout),
    remove: (url) => void run('secret-tool', ['clear', ...names(url)]),
  };
}

function keychain(run: Run): Keyring {
  const names = (url: string) => ['-s', SERVICE, '-a', url];
  const quoted = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`;
  return {
    program: 'security',
    store: (url, apiKey) => {
      const words = ['-U', '-s', SERVICE, '-a', quoted(url), '-l', quoted(LABEL), '-w', quoted(apiKey)];
      return run('security', ['-i'], `add-generic-password ${words.join(' ')}\n`).isDone;
    },
    read: (url) => secretOf(run('security', ['find-generic-password', ...names(url), '-w']).stdout),
    remove: (url) => void run('security', ['delete-generic-password', ...names(url)]),
  };
}

/** Windows PowerShell is on every Windows; the vault is that of the credential manager. */
const VAULT = `$ErrorActionPreference = 'Stop'
[void][Windows.Security.Credentials.PasswordVault, Windows.Security.Credentials, ContentType = WindowsRuntime]
$asked = [Console]::In.ReadToEnd() | ConvertFrom-Json
$vault = New-Object Windows.Security.Credentials.PasswordVault
switch ($asked.action) {
  'store' { $vault.Add((New-Object Windows.Security.Credentials.PasswordCredential('${SERVICE}', $asked.url, $asked.apiKey))) }
  'read' { $found = $vault.Retrieve('${SERVICE}', $asked.url); $found.RetrievePassword(); [Console]::Out.Write($found.Password) }
  'remove' { $vault.Remove($vault.Retrieve('${SERVICE}', $asked.url)) }
}`;

function vault(run: Run): Keyring {
  const ask = (asked: { action: 'store' | 'read' | 'remove'; url: string; apiKey?: string }) =>
    run('powershell.exe', ['-NoProfile', '-NonInteractive', '-Command', VAULT], JSON.stringify(asked));
  return {
    program: 'powershell.exe',
    store: (url, apiKey) => ask({ action: 'store', url, apiKey }).isDone,
    read: (url) => secretOf(ask({ action: 'read', url }).stdout),
    remove: (url) => void ask({ action: 'remove', url }),
  };
}

function secretOf(stdout: string): string | undefined {
  return stdout.trim() || undefined;
}
