/** An answer that is a page which says why there is no other. All of it may be shown to anybody. */
export class PageError extends Error {
  readonly status: 400 | 403 | 404 | 429;
  readonly title: string;
  readonly headers: Readonly<Record<string, string>>;
  constructor(
    status: PageError['status'],
    title: string,
    message: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.name = 'PageError';
    this.status = status;
    this.title = title;
    this.headers = headers;
  }
}

/** The same for what is missing and for what belongs to somebody else. */
export function pageNotFound(): PageError {
  return new PageError(
    404,
    'Not found',
    'There is nothing here. The address may be mistyped, or what it named is gone.',
  );
}

/** The viewer's role does not go that far. */
export function roleRefused(): PageError {
  return new PageError(
    403,
    'Not allowed',
    'Your role does not include this. An administrator can change that.',
  );
}

/** The form does not come from a page of ours, or from one of another session. */
export function formRefused(): PageError {
  return new PageError(
    403,
    'Form refused',
    'This form is too old, or it does not come from this site. Nothing was changed. Open the page again and repeat.',
  );
}

/** Somebody tries too often. */
export function tooManyAttempts(waitMs: number): PageError {
  const seconds = Math.max(1, Math.ceil(waitMs / 1_000));
  const minutes = Math.ceil(seconds / 60);
  const wait = minutes === 1 ? 'a minute' : `${minutes} minutes`;
  return new PageError(429, 'Too many attempts', `There were too many attempts. Try again in ${wait}.`, {
    'retry-after': String(seconds),
  });
}
