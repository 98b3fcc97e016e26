import { readFile, stat } from 'node:fs/promises';

/** The secrets with which the sample tenant checks signatures. */
export type EndpointSecrets = {
  /** The secrets in force now; the file is read again when it has changed. */
  current: () => Promise<readonly string[]>;
  /** Adds secrets for as long as the receiver runs. */
  add: (secrets: readonly string[]) => void;
};

/** The texts of `{secrets: […]}`; everything else in the file is ignored. */
function secretsIn(text: string): string[] {
  const parsed: { secrets?: unknown } | null = JSON.parse(text);
  const list = Array.isArray(parsed?.secrets) ? parsed.secrets : [];
  return list.filter((secret) => typeof secret === 'string');
}

/** Creates the source. A file that is missing or half written counts as unchanged. */
export function createEndpointSecrets(options: {
  file?: string;
  secrets?: readonly string[];
}): EndpointSecrets {
  const added = new Set(options.secrets ?? []);
  let fromFile: string[] = [];
  let readVersion = '';

  const readChanges = async (file: string) => {
    const { mtimeMs, size, ino } = await stat(file);
    const version = `${mtimeMs}:${size}:${ino}`;
    if (version !== readVersion) {
      fromFile = secretsIn(await readFile(file, 'utf8'));
      readVersion = version;
    }
  };

  return {
    current: async () => {
      if (options.file !== undefined) {
        await readChanges(options.file).catch(() => undefined);
      }
      return [...fromFile, ...added];
    },
    add: (secrets) => {
      for (const secret of secrets) {
        added.add(secret);
      }
    },
  };
}
