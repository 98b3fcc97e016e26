/** What whoever starts the server may allow beside reading. */
export const ALLOWED_LEVELS = ['send', 'operate'] as const;

export type AllowedLevel = (typeof ALLOWED_LEVELS)[number];
