import type { TSchema } from 'typebox';
import type { PolicyDefaults } from '../../features/accounts/tenant-policies.ts';
import type { OptionRules } from '../../features/endpoints/endpoint-options.ts';
import type { PlatformKeyState, PlatformScope } from '../../features/keys/platform-key-store.ts';
import type { Mailer } from '../../features/mail/mails.ts';
import type { Audited } from '../../platform/audit/audit.ts';
import type { Config } from '../../platform/config/config.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import type { PageCursors } from '../external/page.ts';
import type { UpstreamCalls } from '../external/upstream-calls.ts';
import type { AnswerOf, Described, InputOf } from '../operations/operation.ts';

export type PlatformCall = {
  tools: SealedDatabase & OptionRules & Audited;
  /** Null: an operator's command, which is not limited. */
  key: PlatformKeyState | null;
  /** Null: a command lists without pages. */
  cursors: PageCursors | null;
  publicUrl: string;
  portal: Config['portal'];
  /** An app is configured in whose dialog customers connect numbers. */
  hasSignup: boolean;
  policyDefaults: PolicyDefaults;
  /** Null: the installation sends no e-mails. */
  mailer: Mailer;
  upstream: UpstreamCalls;
  /** Of an operation that is `idempotent`; null: the request has none, or it is a command. */
  idempotencyKey: string | null;
};

/** `any`: every platform key may. */
export type PlatformScopeName = PlatformScope | 'any';

/** An operation of which the types of input and result are forgotten. */
export type PlatformOperation = Described<
  PlatformScopeName,
  TSchema,
  TSchema,
  TSchema,
  Readonly<Record<number, TSchema>>
> & {
  /** Behind `admin platform`; null: there is no such command. */
  example: string | null;
  run(call: PlatformCall, input: Record<string, unknown>): Promise<unknown>;
  json(result: unknown, call: PlatformCall): unknown;
  status?(result: unknown): number;
};

/** Describes an operation of the platform API; its route, document and admin command follow. */
export function platformOperation<
  Params extends TSchema,
  Query extends TSchema,
  Body extends TSchema,
  Answers extends Readonly<Record<number, TSchema>>,
  Result,
>(
  described: Described<PlatformScopeName, Params, Query, Body, Answers> & {
    example: string | null;
    run(call: PlatformCall, input: InputOf<Params, Query, Body>): Promise<Result>;
    json(result: NoInfer<Result>, call: PlatformCall): AnswerOf<Answers>;
    status?(result: NoInfer<Result>): number;
  },
): PlatformOperation {
  return described as unknown as PlatformOperation;
}
