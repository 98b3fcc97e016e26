/** Held by the process that migrates, as long as its connection lives. */
export const MIGRATION_LOCK = 7_340_005;
