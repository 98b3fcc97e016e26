const KEPT = ['PATH', 'HOME', 'TMPDIR', 'TMP', 'TEMP', 'SystemRoot', 'USER', 'LOGNAME'];

/** The environment for servers that are not ours: a PGOPTIONS or MINIO_* of the user's shell must not reach them. */
export function minimalEnvironment(
  extra: Readonly<Record<string, string>> = {},
): Record<string, string | undefined> {
  const kept = KEPT.filter((name) => process.env[name] !== undefined);
  return {
    ...Object.fromEntries(kept.map((name) => [name, process.env[name]])),
    LC_ALL: 'C',
    TZ: 'UTC',
    ...extra,
  };
}
