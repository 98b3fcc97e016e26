import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { repositoryFile, variableLines } from './compose-file.ts';

/** What a new installation has though the program, for those that are there, does not demand it. */
const SAFE = { HELIOGRAPH_PORTAL_SECOND_FACTOR: 'operators', HELIOGRAPH_MEDIA_URL_TTL_SECONDS: '604800' };

describe('a new installation demands a second factor of operators and signs the URLs of files', () => {
  test('with Docker Compose', () => {
    expect(variableLines(repositoryFile('deploy/heliograph.example.env'))).toMatchObject(SAFE);
  });

  test('with Helm', () => {
    const { settings } = parse(repositoryFile('charts/heliograph/values.yaml'));
    const texts = Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, String(value)]));
    expect(texts).toMatchObject(SAFE);
  });
});
