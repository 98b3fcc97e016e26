import { Counter, type Registry } from '@prometheus-io/client';

/** Counts one more of this result. */
export type CountResult<Result extends string> = (result: Result) => void;

/**
 * A counter with the label `result`, which has these values and no other. All are there from the start with 0:
 * a series that begins with its first failure has no increase to alert on.
 */
export function makeResultCounter<Result extends string>(
  registry: Registry,
  metric: { name: string; help: string; results: readonly Result[] },
): CountResult<Result> {
  const { name, help, results } = metric;
  const counter = new Counter({ name, help, labelNames: ['result'], registers: [registry] });
  const children = new Map(results.map((result) => [result, counter.labels(result)]));
  for (const child of children.values()) child.inc(0);
  return (result) => children.get(result)?.inc();
}

/** The same activity with each run counted by its outcome; one that throws is run again and counts as `later`. */
export function counted<Input, Result extends { outcome: string }>(
  run: (input: Input) => Promise<Result>,
  count: CountResult<Result['outcome'] | 'later'>,
): (input: Input) => Promise<Result> {
  return async (input) => {
    try {
      const result = await run(input);
      count(result.outcome);
      return result;
    } catch (error) {
      count('later');
      throw error;
    }
  };
}
