import type { FailureCode, SetupChange, SetupFailure, SetupLink, SetupStep } from './setup-link-store.ts';

/** Why a step cannot go on without the customer, or without upstream. */
export class SetupProblem extends Error {
  readonly code: FailureCode;
  readonly step: SetupStep;
  readonly more: Partial<Pick<SetupFailure, 'retryable' | 'upstreamCode' | 'retryAt'>>;
  /** What upstream gave is of no use: the token is forgotten, and the customer begins again. */
  readonly isFromStart: boolean;

  constructor(
    step: SetupStep,
    code: FailureCode,
    message: string,
    more: SetupProblem['more'] & { isFromStart?: boolean } = {},
  ) {
    super(message);
    this.name = 'SetupProblem';
    this.step = step;
    this.code = code;
    const { isFromStart = false, ...rest } = more;
    this.more = rest;
    this.isFromStart = isFromStart;
  }
}

/** What becomes of a link by a problem. */
export function failedBy(problem: SetupProblem, link: SetupLink): SetupChange & { failure: SetupFailure } {
  const { step, code, message, more, isFromStart } = problem;
  const failure = { step, code, message, retryable: true, upstreamCode: null, retryAt: null, ...more };
  const failed = { state: 'failed' as const, failure, choice: null, tries: 0 };
  if (!isFromStart) return { ...failed, resumes: link.state };
  return {
    ...failed,
    resumes: null,
    tokenSealed: null,
    authorizedAt: null,
    wabaId: null,
    phoneNumberId: null,
  };
}
