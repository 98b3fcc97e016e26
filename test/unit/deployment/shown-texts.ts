import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import ts from 'typescript-compiler-api';
import { buildAdminCommand } from '../../../src/admin.ts';
import { ERROR_CODES } from '../../../src/api/errors/error-codes.ts';
import { TAGS } from '../../../src/api/openapi/documented.ts';
import { EVENT_BODIES } from '../../../src/api/openapi/webhooks/event-body-schemas.ts';
import { OPERATIONS } from '../../../src/api/operations/operations.ts';
import { KINDS } from '../../../src/ops/alerts/alert-kinds.ts';
import { reconcileCommand } from '../../../src/ops/reconcile/commands/reconcile-command.ts';
import { SETTINGS } from '../../../src/platform/config/settings.ts';
import { TASK_KINDS } from '../../../src/worker/task-kinds.ts';
import { repositoryFile } from './compose-file.ts';

/** A text that users, tenants or operators read, with the place that shows it. */
export type ShownText = { place: string; text: string };

/** The files whose log messages and alert reasons are read: they are made when something happens. */
const SOURCES = globSync('src/**/*.ts', {
  cwd: fileURLToPath(new URL('../../../', import.meta.url)),
}).toSorted();

/** The help of a command and of all commands below it. */
function helpOf(command: Command, path = ''): ShownText[] {
  const place = `${path} ${command.name()}`.trim();
  return [
    { place, text: command.description() },
    ...command.options.map(({ flags, description }) => ({ place: `${place} ${flags}`, text: description })),
    ...command.registeredArguments.map((one) => ({
      place: `${place} <${one.name()}>`,
      text: one.description,
    })),
    ...command.commands.flatMap((part) => helpOf(part, place)),
  ];
}

export function commandTexts(): ShownText[] {
  return [buildAdminCommand(), reconcileCommand(TASK_KINDS)].flatMap((command) => helpOf(command));
}

/** The texts that stand under one of these names, however deep. */
function textsUnder(value: unknown, names: readonly string[], place: string): ShownText[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const path = Array.isArray(value) ? place : `${place}.${name}`;
    if (typeof member !== 'string') return textsUnder(member, names, path);
    return names.includes(name) ? [{ place: path, text: member }] : [];
  });
}

/** Summaries and descriptions of the REST API and of its webhooks, and the help of its commands. */
export function operationTexts(): ShownText[] {
  const operations = OPERATIONS.flatMap((operation) =>
    textsUnder(operation, ['summary', 'description', 'help'], operation.id),
  );
  return [
    ...operations,
    ...textsUnder(TAGS, ['description'], 'tags'),
    ...textsUnder(EVENT_BODIES, ['description'], 'webhooks'),
  ];
}

export function errorTexts(): ShownText[] {
  return textsUnder(ERROR_CODES, ['message', 'advice'], 'error');
}

/** Titles and runbooks of the alerts. */
export function alertTexts(): ShownText[] {
  return Object.entries(KINDS).flatMap(([kind, { title, meaning, steps }]) =>
    [title, meaning, ...steps].map((text) => ({ place: kind, text })),
  );
}

export function settingTexts(): ShownText[] {
  return textsUnder(SETTINGS, ['about'], 'setting');
}

/** The strings in an expression, templates with their values left out. */
function stringsIn(node: ts.Node): string[] {
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (ts.isTemplateExpression(node)) {
    return [[node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)].join('…')];
  }
  const found: string[] = [];
  ts.forEachChild(node, (child) => void found.push(...stringsIn(child)));
  return found;
}

/** Whether a call writes into the log: `logger.warn(…)`, also of a member. */
function isLogCall(node: ts.Node): node is ts.CallExpression {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false;
  const { expression: receiver, name } = node.expression;
  return (
    /\b(?:logger|log)$/i.test(receiver.getText()) &&
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal'].includes(name.text)
  );
}

const REFUSALS =
  /^(?:(?:Request|Api|Page|Send|Facade|Setting|InvalidArgument)Error|invalidValue|invalidParameter|refused)$/;

/** Whether a call or an error refuses something: `invalidValue(…)`, `new RequestError(…)`. */
function isRefusal(node: ts.Node): boolean {
  return (ts.isNewExpression(node) || ts.isCallExpression(node)) && REFUSALS.test(node.expression.getText());
}

/** Whether a member says why an alert is open. */
function isReason(node: ts.Node): node is ts.PropertyAssignment {
  return ts.isPropertyAssignment(node) && node.name.getText() === 'reason';
}

function textsAt(source: string, place: string, isText: (node: ts.Node) => boolean): ShownText[] {
  const file = ts.createSourceFile(place, source, ts.ScriptTarget.Latest, true);
  const found: ShownText[] = [];
  const visit = (node: ts.Node): void => {
    if (isText(node)) found.push(...stringsIn(node).map((text) => ({ place, text })));
    else ts.forEachChild(node, visit);
  };
  visit(file);
  return found.filter(({ text }) => text.includes(' '));
}

/** The messages that a file writes into the log. */
export function logTextsOf(source: string, place: string): ShownText[] {
  return textsAt(source, place, isLogCall);
}

/** The messages of all logs. */
export function logTexts(): ShownText[] {
  return SOURCES.flatMap((path) => logTextsOf(repositoryFile(path), path));
}

/** The sentences with which requests, forms and commands are refused. */
export function refusals(): ShownText[] {
  return SOURCES.flatMap((path) => textsAt(repositoryFile(path), path, isRefusal));
}

/** The reasons of alerts, which carry the facts. */
export function alertReasons(): ShownText[] {
  const alerts = SOURCES.filter((path) => path.startsWith('src/ops/alerts/'));
  return alerts.flatMap((path) => textsAt(repositoryFile(path), path, isReason));
}
