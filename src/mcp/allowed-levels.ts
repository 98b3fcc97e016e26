/** Beside reading, for whoever starts the server. */
export const ALLOWED_LEVELS = ['send', 'operate'] as const;

export type AllowedLevel = (typeof ALLOWED_LEVELS)[number];
