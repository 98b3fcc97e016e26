import { describe, expect, test } from 'vitest';
import { portVariables, readPorts } from '../../../dev/embedded/ports.ts';
import type { Setting } from '../../../src/platform/config/setting.ts';
import { SETTINGS } from '../../../src/platform/config/settings.ts';
import { repositoryFile } from './compose-file.ts';

const DOCUMENT = repositoryFile('docs/operators/configuration.md');

/** The row of a setting in docs/operators/configuration.md. */
function rowOf([name, setting]: [string, Setting]): string {
  return `| \`${name}\` | ${kindOf(setting)} | ${defaultOf(setting)} | ${setting.about} |`;
}

function kindOf({ kind, choices, minimum, maximum, secret }: Setting): string {
  const range = minimum === undefined ? '' : `, ${minimum} to ${maximum}`;
  const text = choices === undefined ? `${kind}${range}` : choices.join(' or ');
  return secret === true ? `${text}, secret` : text;
}

function defaultOf({ fallback }: Setting): string {
  if (fallback === undefined) return '**required**';
  return fallback === '' ? 'empty' : `\`${fallback}\``;
}

describe('docs/operators/configuration.md', () => {
  test('lists exactly the settings that there are, with their types, defaults and meanings', () => {
    const rows = DOCUMENT.split('\n').filter((line) =>
      /^\| `HELIOGRAPH_[A-Z_]+` \| .* \| .* \| .* \|$/.test(line),
    );
    expect(rows.toSorted()).toEqual(
      Object.entries(SETTINGS as Record<string, Setting>)
        .map(rowOf)
        .sort(),
    );
  });

  test('names every port variable of npm start with its default', () => {
    const variables = Object.entries(portVariables(readPorts({})));
    expect(variables.length).toBeGreaterThan(5);
    for (const [name, port] of variables) expect(DOCUMENT).toContain(`| \`${name}\` | ${port} |`);
  });
});
