type IdType = 'bigint' | 'text' | 'uuid';

/**
 * A secret that each row of a table may have, sealed in the column of its name; where it `rotates`, a second column has the one
 * before. `id` is the row's key. `place` is what the secret is bound to: a copy of it in another row does not open.
 */
export function sealedSecret({
  table,
  id: [idColumn, idType],
  secret,
  rotates = false,
}: {
  table: string;
  id: readonly [column: string, type: IdType];
  secret: string;
  rotates?: boolean;
}) {
  const place = (id: string) => `${table}|${secret}|${id}`;
  const names = rotates ? [secret, `previous_${secret}`] : [secret];
  return {
    place,
    columns: names.map((name) => ({ table, column: `${name}_sealed`, idColumn, idType, place })),
  };
}

export type SealedColumn = ReturnType<typeof sealedSecret>['columns'][number];
