export function makeMediaActivities(..._args: unknown[]): object {
  return {};
}
