/** A machine at a quarter of the usual speed has time for everything but what never comes. */
export const PATIENCE_MS = 120_000;
