import { askForAllNumbers } from '../features/accounts/followed-numbers.ts';
import {
  lookUpNumbers,
  type NumberLookup,
  type NumberLookupTools,
} from '../features/accounts/look-up-numbers.ts';

export type RefreshNumbersInput = { wabaId: string };

export type NumberActivities = ReturnType<typeof makeNumberActivities>;

export function makeNumberActivities(tools: NumberLookupTools) {
  return {
    /** `tries`: how often upstream was asked in vain. */
    lookUpNumbers: async (input: RefreshNumbersInput & { tries: number }): Promise<NumberLookup> =>
      await lookUpNumbers(tools, input),

    /** Has all WABAs looked up; each look-up is a separate workflow. */
    askForAllNumbers: async (): Promise<number> => await askForAllNumbers(tools.database),
  };
}
