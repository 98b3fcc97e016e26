import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { contradictions, databaseProblem, fileProblem } from './contradictions.ts';
import { type Environment, settingValue, splitList, unreadable } from './environment.ts';
import type { Setting } from './setting.ts';
import { REMOVED_SETTINGS, SETTINGS, type SettingName } from './settings.ts';

/** Names every setting that is missing or wrong; safe to print, for it never holds a value of a secret. */
export class InvalidSettingsError extends Error {
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`Settings are not usable:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'InvalidSettingsError';
    this.problems = problems;
  }
}

/** Checked access to the settings in `env`; throws InvalidSettingsError. */
export function readSettings(env: Environment) {
  const given = givenSettings(env);
  const { values } = given;
  const problems = [...given.problems, ...wrongValues(values), ...contradictions(values)];
  if (problems.length > 0) throw new InvalidSettingsError(problems);
  const text = (name: SettingName): string => settingValue(values, name) ?? '';
  return {
    text,
    /** Without slashes at its end: paths follow. */
    baseUrl: (name: SettingName): string => text(name).replace(/(?<!\/)\/+$/, ''),
    integer: (name: SettingName): number => Number(text(name)),
    boolean: (name: SettingName): boolean => text(name) === 'true',
    list: (name: SettingName): string[] => splitList(text(name)),
    networks: (name: SettingName): string[] => splitList(text(name)).map(asNetwork),
  };
}

/** The settings in force, secrets replaced, for the log line at start. */
export function redactedSettings(env: Environment): Record<string, string> {
  const { values } = givenSettings(env);
  const shown: Record<string, string> = {};
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    const definition: Setting = SETTINGS[name];
    const value = settingValue(values, name) ?? '';
    shown[name] = definition.secret && value !== '' ? '[redacted]' : value;
  }
  return shown;
}

/**
 * What Kubernetes sets in every container for a service whose name begins with ours, such as
 * HELIOGRAPH_API_PORT=tcp://10.0.0.1:8080 for `heliograph-api`: it is meant as no setting.
 */
const SERVICE_VARIABLE =
  /_SERVICE_(HOST|PORT(_[A-Z0-9_]{1,255})?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/;
const SERVICE_ADDRESS = /^(tcp|udp|sctp):\/\//;

/** The values of the settings as they are given: by their names, or in the files that `<name>_FILE` names. */
function givenSettings(env: Environment): { values: Environment; problems: string[] } {
  const values: Record<string, string> = {};
  const problems: string[] = [];
  for (const [name, text] of Object.entries(env)) {
    const value = text?.trim() ?? '';
    if (!name.startsWith('HELIOGRAPH_') || isServiceVariable(name, value)) continue;
    const ofFile = name.replace(/_FILE$/, '');
    if (name in SETTINGS) {
      if (value !== '') values[name] = value;
    } else if (ofFile in SETTINGS) {
      if (value === '') continue;
      if (env[ofFile]?.trim()) problems.push(`${ofFile} and ${name} are both set: one of them is enough`);
      else readInto(values, ofFile, { name, path: value }, problems);
    } else if (!OTHER_NAMES.test(name)) {
      // A misspelt name would otherwise be a setting that silently keeps its default.
      const advice = REMOVED_SETTINGS[ofFile];
      problems.push(advice === undefined ? `${name} is not a setting` : `${name} was removed: ${advice}`);
    }
  }
  return { values, problems };
}

function isServiceVariable(name: string, value: string): boolean {
  if (name.endsWith('_PORT') && SERVICE_ADDRESS.test(value)) return true;
  return !(name in SETTINGS) && SERVICE_VARIABLE.test(name);
}

function readInto(
  values: Record<string, string>,
  setting: string,
  { name, path }: { name: string; path: string },
  problems: string[],
): void {
  try {
    values[setting] = readFileSync(path, 'utf8').trim();
  } catch (error) {
    problems.push(`${name} ${unreadable(error)}`);
  }
}

/** Read by the embedded start-up and its launcher, not by the service itself. */
const OTHER_NAMES = /^HELIOGRAPH_(EMBEDDED_|TEMPORAL_BIN$|MINIO_BIN$|CHROMIUM$|TEST_)/;

function wrongValues(env: Environment): string[] {
  const problems: string[] = [];
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    const value = settingValue(env, name);
    const problem = value === undefined ? 'is required' : problemWith(SETTINGS[name], value);
    if (problem !== null) problems.push(`${name} ${problem} (${SETTINGS[name].about})`);
  }
  return problems;
}

function problemWith(definition: Setting, value: string): string | null {
  switch (definition.kind) {
    case 'integer': {
      const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER } = definition;
      const number = Number(value);
      const fits = /^-?\d+$/.test(value) && number >= minimum && number <= maximum;
      return fits ? null : `must be a whole number from ${minimum} to ${maximum}`;
    }
    case 'boolean':
      return value === 'true' || value === 'false' ? null : 'must be true or false';
    case 'choice':
      return definition.choices?.includes(value) ? null : `must be one of ${definition.choices?.join(', ')}`;
    case 'url':
      return URL.canParse(value) ? null : 'must be an absolute URL';
    case 'cidrs':
      return splitList(value).map(asNetwork).every(ipaddr.isValidCIDR)
        ? null
        : 'must be networks such as 10.1.0.0/16 or fd00::/8, separated by commas';
    case 'address':
      return value === '' || ADDRESS.test(value) ? null : 'must be host:port';
    case 'file':
      return value === '' ? null : fileProblem(value);
    case 'database':
      return value === '' ? null : databaseProblem(value);
    default:
      return null;
  }
}

const ADDRESS = /^(\[[0-9A-Fa-f:.]+\]|[^\s:/[\]]+):\d{1,5}$/;

function asNetwork(text: string): string {
  const bits = { 0: '', 4: '/32', 6: '/128' }[isIP(text)] ?? '';
  return `${text}${bits}`;
}
