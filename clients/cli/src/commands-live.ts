import { type Command, type Context, textOf, type Values } from './command.ts';
import { examine, exitCodeOf, TIMEOUT_MS } from './doctor.ts';
import { readStream } from './event-stream.ts';
import { EXIT, type ExitCode, wrongUsage } from './failure.ts';
import { readBytes, secretOf } from './given-files.ts';
import { listen } from './listen.ts';
import { printable } from './output.ts';
import { addressOf } from './service-url.ts';
import { secretBytes } from './signature.ts';
import { diagnose } from './verify.ts';

const TYPES = {
  type: 'string',
  value: '<types>',
  help: 'event types, separated by commas; upstream.* for all fields of upstream',
} as const;

const SECRET_OPTIONS = {
  'secret-file': {
    type: 'string',
    value: '<path>',
    help: 'a file with the secret of the endpoint; or HELIOGRAPH_WEBHOOK_SECRET',
  },
  secret: {
    type: 'string',
    value: '<whsec_…>',
    help: 'the secret itself, which then is in the history of the shell',
  },
} as const;

const SECONDS = /^\d{1,6}$/;

const listenCommand: Command = {
  name: 'listen',
  summary: 'forward live events to a server on your machine',
  details:
    'Requests are as the service sends them: signed, in order per eventId. The secret is yours, or one of the session that is shown and kept. An attempt that fails is not repeated by itself: press r. Events that came while you did not listen are offered at the start.',
  options: {
    'forward-to': {
      type: 'string',
      value: '<url>',
      help: 'where to forward events to, or a port of this machine',
    },
    types: TYPES,
    ...SECRET_OPTIONS,
    resume: { type: 'boolean', help: 'forward what came since the last session, without asking' },
    'new-only': { type: 'boolean', help: 'forward only what comes from now on, without asking' },
    'idle-exit': { type: 'string', value: '<seconds>', help: 'end when nothing has come for this time' },
  },
  examples: ['heliograph listen --forward-to http://localhost:3000/webhooks --types message,status'],
  async run(context, _operands, values) {
    const forwardTo = textOf(values, 'forward-to');
    if (forwardTo === undefined)
      throw wrongUsage('Say where to: --forward-to http://localhost:3000/webhooks.');
    if (values.resume === true && values['new-only'] === true)
      throw wrongUsage('Take --resume or --new-only.');
    return await listen(context, {
      forwardTo,
      types: textOf(values, 'types'),
      secret: secretOf(values, context.env),
      resume: values.resume === true ? true : values['new-only'] === true ? false : undefined,
      idleExitMs: secondsOf(values, 'idle-exit'),
    });
  },
};

function secondsOf(values: Values, name: string): number | null {
  const text = textOf(values, name);
  if (text === undefined) return null;
  if (!SECONDS.test(text)) throw wrongUsage(`--${name} must be a number of seconds.`);
  return Number(text) * 1_000;
}

const tail: Command = {
  name: 'tail',
  summary: 'print live events',
  details: 'With --json, each event is a line of JSON with its body as it is sent.',
  options: { types: TYPES, cursor: { type: 'string', value: '<cursor>', help: 'go on behind this cursor' } },
  examples: ['heliograph tail --types message', 'heliograph tail --json | jq .body.data'],
  async run(context, _operands, values) {
    const { output, isJson } = context;
    const stop = new AbortController();
    let exitCode: ExitCode = EXIT.ok;
    const interrupt = (): void => {
      exitCode = EXIT.interrupted;
      stop.abort();
    };
    process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
    const reading = readStream({
      api: context.api(),
      types: textOf(values, 'types'),
      cursor: textOf(values, 'cursor') ?? null,
      signal: stop.signal,
      onEvent({ body, ...head }, cursor) {
        if (!isJson) return output.line(tailLine(head, context));
        const known = JSON.stringify({ ...head, cursor });
        output.jsonLine(`${known.slice(0, -1)},"body":${body?.toString('utf8') ?? 'null'}}`);
      },
      onCursor() {},
      onOpen: (isAgain) =>
        output.note(isAgain ? 'Connected again; nothing was missed.' : 'Waiting for events.'),
      onCut: (problem, waitMs) =>
        output.note(`Disconnected: ${problem}. Again in ${(waitMs / 1_000).toFixed(1)} s.`),
    });
    await reading.finally(() => process.off('SIGINT', interrupt).off('SIGTERM', interrupt));
    return exitCode;
  },
};

type Shown = { createdAt: string; eventType: string; eventId: string; sequence: number; id: string };

function tailLine(
  { createdAt, eventType, eventId, sequence, id }: Shown,
  { output: { style } }: Context,
): string {
  const time = style('dim', createdAt);
  return `${time} ${style('cyan', eventType.padEnd(11))} ${printable(eventId)} ${style('dim', `#${sequence} ${id}`)}`;
}

const verify: Command = {
  name: 'verify',
  isLocal: true,
  summary: 'check a signature, and say why it does not match',
  details:
    'Needs no service and no API key. The body is text, @file, or - for standard input. Keep the secret in HELIOGRAPH_WEBHOOK_SECRET or in a file, out of the history of the shell.',
  options: {
    ...SECRET_OPTIONS,
    body: { type: 'string', value: '<text|@file|->', help: 'the raw body' },
    header: {
      type: 'string',
      value: '<name: value>',
      help: 'a header of the request; repeat it for each',
      multiple: true,
    },
  },
  examples: [
    "heliograph verify --body @body.json --header 'webhook-id: evt_…' --header 'webhook-timestamp: 1790000000' --header 'webhook-signature: v1,…'",
  ],
  async run({ output, isJson, env }, _operands, values) {
    const secret = secretOf(values, env);
    const given = textOf(values, 'body');
    if (secret === undefined)
      throw wrongUsage(
        'Set HELIOGRAPH_WEBHOOK_SECRET, or name a file that has the secret with --secret-file.',
      );
    if (given === undefined)
      throw wrongUsage('Name the body with --body: text, @file, or - for standard input.');
    const verdict = diagnose(secret, readBytes(given), headersOf(values));
    if (isJson) output.json(verdict);
    else {
      output.line(output.style(verdict.isValid ? 'green' : 'red', verdict.problem));
      if (verdict.advice !== '') output.line(verdict.advice);
    }
    return verdict.isValid ? EXIT.ok : EXIT.failed;
  },
};

function headersOf(values: Values): Record<string, string> {
  const lines = Array.isArray(values.header) ? values.header : [];
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(':');
      if (at <= 0) throw wrongUsage(`--header must be "name: value", not ${JSON.stringify(line)}.`);
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }),
  );
}

const doctor: Command = {
  name: 'doctor',
  isLocal: true,
  operands: '<url>',
  count: [1, 1],
  summary: 'check a server that receives webhooks',
  details:
    'Sends test events from this machine: is it reachable, is TLS right, does it respond with 2xx in time, does it refuse wrong signatures, does it accept a repeated webhook-id. Needs no service and no API key.',
  options: {
    ...SECRET_OPTIONS,
  },
  examples: ['heliograph doctor https://shop.example/webhooks'],
  async run({ output, isJson, env }, [url = ''], values) {
    const parsed = addressOf(url, 'The URL', 'https://shop.example/webhooks');
    const secret = secretOf(values, env) ?? null;
    if (secret !== null && secretBytes(secret) === null)
      throw wrongUsage('The secret must begin with whsec_ and be base64.');
    const marks = {
      ok: output.style('green', '✓'),
      failed: output.style('red', '✗'),
      warning: output.style('yellow', '!'),
      skipped: output.style('dim', '-'),
    };
    const findings = await examine(
      { url: parsed.href, secret, timeoutMs: TIMEOUT_MS },
      ({ check, outcome, detail }) => {
        if (!isJson) output.line(`${marks[outcome]} ${check.padEnd(10)} ${printable(detail)}`);
      },
    );
    if (isJson) output.json(findings);
    return exitCodeOf(findings);
  },
};

export const LIVE_COMMANDS: readonly Command[] = [listenCommand, tail];
export const LOCAL_COMMANDS: readonly Command[] = [verify, doctor];
