import type { Command } from 'commander';
import type { FastifyReply, FastifyRequest, RouteShorthandOptions } from 'fastify';
import type { Static, TSchema } from 'typebox';
import type { OptionRules } from '../../features/endpoints/endpoint-options.ts';
import type { TestEventTools } from '../../features/endpoints/test-event.ts';
import type { Audited } from '../../platform/audit/audit.ts';
import type { AdminOutcome, AdminTools } from '../../platform/cli/admin-action.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import type { ExternalContext } from '../external/external-app.ts';
import type { PageCursors } from '../external/page.ts';
import type { Account, ScopeName } from '../keys/api-key-auth.ts';
import type { AnswerDocs, OperationDocs } from '../openapi/documented.ts';

export type Call = {
  tools: SealedDatabase & OptionRules & Audited;
  wabaId: string;
  /** The caller, for lists and for sentences: "operator", "an operator"; of an API key both are "API key 3". */
  by: { name: string; inText: string };
  testEvents: Pick<TestEventTools, 'startDelivery' | 'waitMs'>;
  /** Null: a command lists without pages. */
  cursors: PageCursors | null;
  /** Null: a command waits for the database as long as it takes. */
  timeoutMs: null | undefined;
};

export type ApiCall = Call &
  ExternalContext & { account: Account; request: FastifyRequest; reply: FastifyReply };

/** An option of a command for one member of the input; its schema gives the parser. */
export type OptionDescription = {
  flags: string;
  help: string;
  default?: unknown;
  isRequired?: true;
  /** The option is repeated for several values, which are otherwise separated by commas. */
  isRepeated?: true;
  /** The help lists the values of the enumeration, and commander refuses others. */
  showsChoices?: true;
};

type Shown<Input> = { tools: AdminTools; call: Call; input: Input };

export type CommandDescription<Input, Result> = {
  /** Behind `admin`: "replay pause". */
  name: string;
  help: string;
  example: string;
  /** The help of `--waba`, or how to find the WABA of the object that the command names. */
  waba: string | ((tools: AdminTools, id: string) => Promise<string>);
  argument?: string;
  options?: { readonly [Member in keyof Input]?: OptionDescription };
  /** Adds options that stand for no single member; `read` makes members of them. */
  extend?(command: Command): void;
  read?(options: Readonly<Record<string, unknown>>): Promise<Partial<Input>>;
  /** The command needs `--yes`, and says without it what would be deleted. */
  confirmDeletion?(call: Call, input: Input): Promise<string>;
  show(result: Result, shown: Shown<Input>): AdminOutcome | Promise<AdminOutcome>;
  /** Lets `--waba` be left out: what every WABA has. */
  showAll?(results: readonly Result[]): AdminOutcome;
};

export type Described<
  Scope,
  Params extends TSchema,
  Query extends TSchema,
  Body extends TSchema,
  Answers extends Readonly<Record<number, TSchema>>,
> = Omit<OperationDocs, 'operationId' | 'answers'> & {
  id: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: `/${string}`;
  scope: Scope;
  /** The path's own parameters; `checkId` refuses an id that cannot exist. */
  params?: Params;
  checkId?: (id: string) => string;
  /** Without one, a request may have no query. */
  query?: Query;
  /** Without one, the body of a request that may have one must be empty. */
  body?: Body;
  answers: { readonly [Status in keyof Answers]: AnswerDocs & { schema: Answers[Status] } };
  route?: Pick<RouteShorthandOptions, 'bodyLimit' | 'handlerTimeout' | 'validatorCompiler' | 'config'>;
};

export type InputOf<Params extends TSchema, Query extends TSchema, Body extends TSchema> = Static<Params> &
  Static<Query> &
  Static<Body>;

export type AnswerOf<Answers extends Readonly<Record<number, TSchema>>> = Static<
  Extract<Answers[keyof Answers], TSchema>
>;

/** An operation of which the types of input and result are forgotten. */
export type Operation = Described<ScopeName, TSchema, TSchema, TSchema, Readonly<Record<number, TSchema>>> & {
  run(call: Call | ApiCall, input: Record<string, unknown>): Promise<unknown>;
  json?(result: unknown, call: ApiCall): unknown;
  status?(result: unknown): number;
  location?(result: unknown): string | null;
  command?: CommandDescription<Record<string, unknown>, unknown>;
};

/** Describes an operation of the API and its admin command: both run the same code. */
export function operation<
  Params extends TSchema,
  Query extends TSchema,
  Body extends TSchema,
  Answers extends Readonly<Record<number, TSchema>>,
  Result,
>(
  described: Described<ScopeName, Params, Query, Body, Answers> & {
    run(call: Call, input: InputOf<Params, Query, Body>): Promise<Result>;
    json(result: NoInfer<Result>, call: ApiCall): AnswerOf<Answers>;
    status?(result: NoInfer<Result>): number;
    location?(result: NoInfer<Result>): string | null;
    command: CommandDescription<InputOf<Params, Query, Body>, NoInfer<Result>>;
  },
): Operation {
  return described as unknown as Operation;
}

/** Describes an operation that only the API offers; `run` returns its answer. */
export function restOperation<
  Params extends TSchema,
  Query extends TSchema,
  Body extends TSchema,
  Answers extends Readonly<Record<number, TSchema>>,
>(
  described: Described<ScopeName, Params, Query, Body, Answers> & {
    run(call: ApiCall, input: InputOf<Params, Query, Body>): Promise<AnswerOf<Answers>>;
  },
): Operation {
  return described as unknown as Operation;
}
