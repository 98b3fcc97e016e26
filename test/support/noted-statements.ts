import type { Database } from '../../src/platform/postgres/database.ts';

/** As `given`, and notes the text of every statement, with those that begin and end a transaction. */
export function notingStatements<Given extends Database>(given: Given, noted: string[]): Given {
  return {
    ...given,
    raw: (text, bindings) => {
      noted.push(text);
      return given.raw(text, bindings);
    },
    transaction: (work) => {
      noted.push('begin', 'commit');
      return given.transaction((trx) => work(notingStatements(trx, noted)));
    },
  };
}
