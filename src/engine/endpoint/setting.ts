import { type TSchema, Type } from 'typebox';
import type { Config } from '../../platform/config/config.ts';
import { invalidValue, shown } from '../../platform/request-input.ts';
import type { WorkflowMode } from './workflow-mode.ts';

export type InstallationSettings = {
  retryScheduleSeconds: readonly number[];
  timeoutMs: number;
  deliveryWorkflows: WorkflowMode;
};

export function installationSettings({
  webhooks,
  delivery,
}: Pick<Config, 'webhooks' | 'delivery'>): InstallationSettings {
  return {
    retryScheduleSeconds: webhooks.retryScheduleMs.map((waitMs) => waitMs / 1_000),
    timeoutMs: webhooks.timeoutMs,
    deliveryWorkflows: delivery.workflows,
  };
}

export type SettingLimits = { maxTimeoutMs: number };

/** Settings of a section are together wherever they are shown; the sections' order is each door's own. */
export type Section = 'where' | 'what' | 'retries' | 'signature' | 'limits' | 'order';

/** How a value is read from a form or a command line, and of which type its column is. */
export type Kind = 'text' | 'choice' | 'texts' | 'lines' | 'number' | 'numbers';

type Text = string | ((defaults: InstallationSettings) => string);

/** `Given` is what a request may bring, `Stored` what the column of the same name has. */
export type Setting<Given, Stored> = {
  kind: Kind;
  section: Section;
  /** In requests, where null goes back to `fallback`. */
  request: TSchema;
  /** In responses, where null stands for a `fallback` that is null. */
  answer: TSchema;
  fallback: Stored;
  example: Stored;
  /** Throws RequestError `invalid_value`. */
  check(given: Given, limits: SettingLimits): Stored;
  portal: PortalField<Stored>;
  command: CommandOption<Stored>;
};

type PortalField<Stored> = {
  field: string;
  label: string;
  hint?: Text;
  unit?: string;
  perUnit?: number;
  maxLength?: number;
  choices?: Readonly<Record<string, string>>;
  more?: { summary: string; choices: Readonly<Record<string, string>> };
  /** `radios` shows all choices at once; `lines` has one value to a line. */
  widget: 'line' | 'lines' | 'ticks' | 'radios' | 'list';
  /** On the page of an endpoint: what stands there for a null, and for a value that does not speak for itself. */
  byDefault?: Text;
  show?(value: NonNullable<Stored>): string;
  isMonospaced?: true;
};

type CommandOption<Stored> = {
  flags: string;
  help: string;
  words?: Readonly<Record<string, NonNullable<Stored>>>;
  label: string;
  byDefault?: string;
  show?(value: NonNullable<Stored>): string;
};

type Doors<Stored> = {
  section: Section;
  portal: Omit<PortalField<Stored>, 'widget'>;
  command: CommandOption<Stored>;
};

export function textSetting(
  own: Doors<string> & { example: string; check: (text: string) => string },
): Setting<string, string> {
  const schema = Type.String();
  const portal = { ...own.portal, widget: 'line' } as const;
  return { ...own, kind: 'text', request: schema, answer: schema, fallback: '', portal };
}

/** Where `fallback` is null, also what the installation says. */
export function choiceSetting<Name extends string, Fallback extends Name | null>(
  own: Omit<Doors<Name>, 'portal'> & {
    names: readonly Name[];
    fallback: Fallback;
    description?: string;
    title: string;
    portal: Omit<PortalField<Name>, 'choices'> & { choices: Readonly<Record<Name, string>> };
  },
): Setting<string, Name | Fallback> {
  const { names, title, description, ...setting } = own;
  const schema = Type.Enum([...names], description === undefined ? {} : { description });
  const check = (name: string) => oneOf(title, names, name);
  return { ...setting, kind: 'choice', example: own.fallback, request: schema, answer: schema, check };
}

/** Null: what `portal.byDefault` says. */
export function textsSetting<Item extends string>(
  own: Doors<Item[]> & {
    description?: string;
    example?: Item[];
    item: TSchema;
    maxItems: number;
    check: (texts: readonly string[]) => Item[];
  },
): Setting<readonly string[], Item[] | null> {
  const { item, maxItems, description, ...setting } = own;
  const said = description === undefined ? {} : { description };
  const schemas = {
    request: Type.Array(item, { minItems: 1, maxItems, ...said }),
    answer: Type.Array(item, said),
  };
  const portal = { ...own.portal, widget: 'ticks' } as const;
  return { example: null, ...setting, kind: 'texts', ...schemas, fallback: null, portal };
}

/** One to a line; null: none. */
export function linesSetting(
  own: Doors<string[]> & {
    description: string;
    maxItems: number;
    check: (texts: readonly string[]) => string[];
  },
): Setting<readonly string[], string[] | null> {
  const { maxItems, description, ...setting } = own;
  const request = Type.Array(Type.String(), { minItems: 1, maxItems, description });
  const answer = Type.Array(Type.String(), { description });
  const portal = { ...own.portal, widget: 'lines' } as const;
  return { example: null, ...setting, kind: 'lines', request, answer, fallback: null, portal };
}

export function numberSetting(
  own: Doors<number> & {
    description?: string;
    check: (value: number, limits: SettingLimits) => number;
  },
): Setting<number, number | null> {
  const { description, ...setting } = own;
  const schema = Type.Integer(description === undefined ? {} : { description });
  const portal = { maxLength: 400, ...own.portal, widget: 'line' } as const;
  return {
    ...setting,
    example: null,
    kind: 'number',
    request: schema,
    answer: schema,
    fallback: null,
    portal,
  };
}

export function numbersSetting(
  own: Doors<number[]> & { maxItems: number; check: (values: readonly number[]) => number[] },
): Setting<readonly number[], number[] | null> {
  const { maxItems, ...setting } = own;
  const request = Type.Array(Type.Integer(), { minItems: 1, maxItems });
  const answer = Type.Array(Type.Integer());
  const portal = { maxLength: 400, ...own.portal, widget: 'line' } as const;
  return { ...setting, example: null, kind: 'numbers', request, answer, fallback: null, portal };
}

const UNITS = [
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
] as const;

/** Waits as people say them: `5 s, 2 min, 24 h`. */
export function waitsText(seconds: readonly number[]): string {
  return seconds
    .map((wait) => {
      const [size, unit] = UNITS.find(([size]) => wait > 0 && wait % size === 0) ?? [1, 's'];
      return `${wait / size} ${unit}`;
    })
    .join(', ');
}

/** Throws RequestError `invalid_value` for what is not whole or out of bounds. */
export function wholeNumber(
  title: string,
  value: number,
  minimum: number,
  maximum: number,
  note = '',
): number {
  if (Number.isInteger(value) && value >= minimum && value <= maximum) return value;
  throw invalidValue(
    `${title} must be a whole number from ${minimum} to ${maximum}${note}, not ${shown(String(value))}.`,
  );
}

/** Throws RequestError `invalid_value` for another name. */
function oneOf<Name extends string>(title: string, names: readonly Name[], given: string): Name {
  const name = names.find((known) => known === given);
  if (name !== undefined) return name;
  throw invalidValue(`${title} must be one of ${names.join(', ')}, not ${shown(String(given))}.`);
}

export function textOf(text: Text | undefined, defaults: InstallationSettings): string {
  return typeof text === 'function' ? text(defaults) : (text ?? '');
}
