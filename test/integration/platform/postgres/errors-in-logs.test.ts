import { expect, onTestFinished, test } from 'vitest';
import { buildApp } from '../../../../src/api/app.ts';
import { openLogger, redactError } from '../../../../src/platform/logger.ts';
import { openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { seededDatabase } from '../../../support/test-database.ts';
import { addKey, NUMBER, testConfig, WABA } from '../../api/api-harness.ts';

const PHONE = '5491112345678';
const TEXT = 'my card is 4111';

/** Statements that fail because of what is in their rows. */
function failures(database: Database): (() => Promise<unknown>)[] {
  const contact = () =>
    execute(
      database,
      'insert into contacts (waba_id, wa_id, user_id) values (:waba, :phone, gen_random_uuid())',
      { waba: WABA, phone: PHONE },
    );
  return [
    // Key (waba_id, wa_id)=(…) already exists.
    async () => {
      await contact();
      await contact();
    },
    // Failing row contains (…).
    () =>
      execute(
        database,
        `insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content, sent_at)
         values (:waba, :number, null, 'inbound', :phone, 'text', :text, now())`,
        { waba: WABA, number: NUMBER, phone: `wamid.${PHONE}`, text: TEXT },
      ),
    // value "…" is out of range for type integer
    () => query(database, 'select cast(cast(:phone as text) as integer)', { phone: PHONE }),
    // JSON data, line 1: …
    () =>
      query(database, 'select cast(cast(:phone as text) as jsonb)', {
        phone: `{"to": ${PHONE}, "text": ${TEXT}`,
      }),
    // The value stands within quotes of its own.
    () => query(database, 'select cast(cast(:text as text) as uuid)', { text: `a "${TEXT}" "${PHONE}` }),
  ];
}

test('no line of a log holds a value of a row that a statement failed for, nor a secret of a URL', async () => {
  const { database } = await seededDatabase();
  const lines: string[] = [];
  const logger = openLogger({ logLevel: 'debug' }, 'test', { write: (line) => void lines.push(line) });
  const codes: unknown[] = [];
  for (const fail of failures(database)) {
    const error = await fail().then(
      () => null,
      (caught: unknown) => caught,
    );
    expect(JSON.stringify([error, String(error)])).toMatch(new RegExp(`${PHONE}|${TEXT}`));
    logger.error({ err: error }, 'failed');
    logger.child({}).warn({ err: new Error('outer', { cause: error }) }, 'failed behind another');
    codes.push(JSON.parse(lines.at(-2) ?? '{}').err.code);
    redactError(error);
    lines.push(JSON.stringify(error, ['message', 'stack', 'detail', 'where', 'hint']), String(error));
  }
  const address = 'https://user:pass@shop.example/hooks/s3cret?token=abc';
  logger.warn({ err: new TypeError(`fetch failed for ${address}`) }, 'failed');
  expect(codes).toEqual(['23505', '23502', '22003', '22P02', '22P02']);
  expect(lines.join('')).toContain('https://shop.example/…');
  expect(lines.join('')).toContain('contacts');
  expect(lines.join('\n')).not.toMatch(new RegExp(`${PHONE}|${TEXT}|s3cret|pass|abc`));
});

test('a request that fails for a row is answered 500 and logged without it', async () => {
  const { database } = await seededDatabase();
  const { authorization } = await addKey(database);
  const lines: string[] = [];
  const logger = openLogger({ logLevel: 'info' }, 'test', { write: (line) => void lines.push(line) });
  const config = testConfig();
  const [, , , failing] = failures(database);
  const broken: Database = { ...database, raw: async () => (await failing?.()) as never };
  const objectStore = openObjectStore(config.objectStore);
  const app = buildApp({ config, database: broken, lookupDatabase: database, objectStore, logger });
  onTestFinished(() => app.close());
  const answer = await app.inject({ url: '/me', headers: { authorization } });
  expect(answer.statusCode).toBe(500);
  const line = lines.find((one) => one.includes('request failed'));
  expect(JSON.parse(line ?? '{}').err).toMatchObject({ code: '22P02' });
  expect(answer.body + lines.join('')).not.toMatch(new RegExp(`${PHONE}|${TEXT}`));
});
