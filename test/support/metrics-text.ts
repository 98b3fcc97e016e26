/** The samples of a text in Prometheus's format: value by series, as `name{label="value"}`. */
export function samplesOf(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(' ');
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}

/** Series of one metric that are not 0. */
export function counted(text: string, name: string): Record<string, number> {
  const own = [...samplesOf(text)].filter(([series, value]) => series.startsWith(`${name}{`) && value !== 0);
  return Object.fromEntries(own.map(([series, value]) => [series.slice(name.length), value]));
}
