export type AppSecret = {
  readonly secret: string;
  /** Null: every WABA. */
  readonly wabaIds: readonly string[] | null;
};

const WITH_WABAS = /^(.+)@(\d{1,64}(?:\+\d{1,64})*)$/;

/** Reads `secret` or `secret@wabaId+wabaId`. */
export function readAppSecret(text: string): AppSecret {
  const [, secret, wabaIds] = WITH_WABAS.exec(text) ?? [];
  if (secret === undefined || wabaIds === undefined) return { secret: text, wabaIds: null };
  return { secret, wabaIds: wabaIds.split('+') };
}
