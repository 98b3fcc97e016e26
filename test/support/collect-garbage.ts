import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** What a test measures after it is in use, and not only not collected yet. */
export const collectGarbage: () => void = runInNewContext('gc');
