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

export const integer = (fallback: string, [minimum, maximum]: readonly [number, number], about: string) =>
  setting({ kind: 'integer', fallback, minimum, maximum, about });

export const retentionDays = (fallback: string, what: string) =>
  integer(fallback, [0, 36_500], `days to keep ${what}; 0: for ever`);

export const durationMs = (fallback: string, maximum: number, about: string) =>
  integer(fallback, [0, maximum], about);

export const choice = <const Choices extends readonly string[]>(
  choices: Choices,
  fallback: Choices[number],
  about: string,
) => setting({ kind: 'choice', choices, fallback, about });

export const optional = (kind: Kind, about: string) => setting({ kind, fallback: '', about });

export const optionalSecret = (kind: Kind, about: string) =>
  setting({ kind, fallback: '', secret: true, about });
