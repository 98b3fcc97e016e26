const PASSWORD = { type: 'password', required: true, limit: 4_096 } as const;

export const EMAIL = {
  name: 'email',
  label: 'E-mail address',
  type: 'email',
  autocomplete: 'username',
  required: true,
} as const;

export const NAME = {
  name: 'name',
  label: 'Your name',
  autocomplete: 'name',
  required: true,
  maxLength: 200,
} as const;

export const PRESENT_PASSWORD = { ...PASSWORD, autocomplete: 'current-password' } as const;

export const NEW_PASSWORD = {
  ...PASSWORD,
  name: 'password',
  autocomplete: 'new-password',
  maxLength: 256,
  hint: 'At least 12 characters; several words make a good one.',
} as const;

export const CODE = {
  name: 'code',
  autocomplete: 'one-time-code',
  required: true,
  isTypedAgain: true,
} as const;

export const NEXT = { name: 'next', label: '', widget: 'hidden', limit: 4_096 } as const;
