/** `cidrs`: a list of networks, also single addresses; `address`: host:port; `file`: the path of one that can be read. */
type Kind =
  | 'text'
  | 'integer'
  | 'boolean'
  | 'list'
  | 'cidrs'
  | 'url'
  | 'database'
  | 'address'
  | 'file'
  | 'choice';

export type Setting = {
  readonly kind: Kind;
  readonly about: string;
  /** Absent: the setting is required. */
  readonly fallback?: string;
  readonly secret?: true;
  readonly choices?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
};

export const setting = <T extends Setting>(definition: T): T => definition;

export const retentionDays = (fallback: string, what: string) =>
  setting({
    kind: 'integer',
    fallback,
    minimum: 0,
    maximum: 36_500,
    about: `days to keep ${what}; 0: for ever`,
  });

export const optional = (kind: Kind, about: string) => setting({ kind, fallback: '', about });

export const durationMs = (fallback: string, maximum: number, about: string) =>
  setting({ kind: 'integer', fallback, minimum: 0, maximum, about });
