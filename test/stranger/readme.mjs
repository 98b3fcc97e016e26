/** The code blocks of a section of level 2 in a language, in their order. */
export function sectionBlocks(markdown, title, language) {
  const section = `\n${markdown}`.split(/\n## /).find((text) => text.startsWith(`${title}\n`)) ?? '';
  const blocks = section.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm);
  return [...blocks].filter(([, found]) => found === language).map(([, , code = '']) => code.trim());
}

/** What a line of the sample looks like with other times, ids and spaces. */
export function sampleLine(sample) {
  const escaped = sample.trim().replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const anyTime = escaped.replace(/^\d\d:\d\d:\d\d\\\.\d{3}/, '\\d\\d:\\d\\d:\\d\\d\\.\\d{3}');
  return new RegExp(`^${anyTime.replace(/…\S+/, '…\\S+').replace(/ +/g, ' +')}`, 'm');
}

/** The statuses that the section "First message" promises. */
export function statusesSaid(markdown) {
  const sentence = /receives the statuses ([^.]+)\./.exec(markdown)?.[1] ?? '';
  const said = [...sentence.matchAll(/`(\w+)`/g)].map(([, status]) => status);
  if (said.length === 0) throw new Error('the README does not say which statuses come');
  return said;
}
