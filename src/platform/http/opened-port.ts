/** An address that nothing can listen at, in a sentence for the operator who chose it. */
export class PortNotOpenedError extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'PortNotOpenedError';
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is taken by another program',
  EACCES: 'may not be opened by this user',
  EADDRNOTAVAIL: 'is no address of this machine',
  ENOTFOUND: 'has a host that has no address',
};

/** Opens the port that a setting names; what keeps it from that is said with the setting, which is how to choose another. */
export async function openedPort<Opened>(
  setting: string,
  { host, port }: { host: string; port: number },
  open: () => Promise<Opened>,
): Promise<Opened> {
  try {
    return await open();
  } catch (error) {
    const { code = '', syscall } = error as NodeJS.ErrnoException;
    if (syscall !== 'listen' && syscall !== 'getaddrinfo') throw error;
    const reason = REASONS[code] ?? `cannot be opened (${code})`;
    const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
    throw new PortNotOpenedError(`Cannot listen at ${address} (${setting}): it ${reason}.`, error);
  }
}
