/** Beside reading, for the user who starts the server. */
export const ALLOWED_LEVELS = ['send', 'operate'] as const;

export type AllowedLevel = (typeof ALLOWED_LEVELS)[number];
