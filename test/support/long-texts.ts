const LENGTH = 100_000;

/** What an expression that begins again at each character is slow with. */
export const PUMPS = [' ', 'a+', '/', '.', '0', '=', '\t,', '";', '%20', 'é'];

/** Long and monotonous texts: they may cost time in proportion to their length, wherever they come from. */
export const LONG_TEXTS = PUMPS.map((pump) => `a${pump.repeat(LENGTH / pump.length)}b`);

/** How much CPU time this process spends on some work. */
export async function cpuMsOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
