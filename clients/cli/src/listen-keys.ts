import type { Context } from './command.ts';
import type { Forwarder } from './forwarder.ts';
import { diffText } from './listen-lines.ts';

/** Obeys keys while events are forwarded; where input is no terminal, each letter of it. */
export function readKeys({ stdin, output, isInteractive }: Context, forwarder: Forwarder, quit: () => void) {
  const failed = () => forwarder.latest().filter(({ isDelivered }) => !isDelivered);
  const retry = (chosen: ReturnType<typeof failed>): void => {
    if (chosen.length === 0) output.note('No delivery has failed.');
    for (const one of chosen) forwarder.retry(one);
  };
  const obey = (key: string): void => {
    if (key === 'q' || key === '\u0003') quit();
    else if (key === 'd') output.note(diffText(forwarder.attempts(), output));
    else if (key === 'r') retry(failed().slice(-1));
    else if (key === 'R') retry(failed());
  };
  const onData = (data: Buffer): void => {
    for (const key of data.toString('utf8')) obey(key);
  };
  if (isInteractive) stdin.setRawMode?.(true);
  stdin.on('data', onData).on('error', () => {});
  stdin.resume();
  return {
    areRead: isInteractive,
    close(): void {
      if (isInteractive) stdin.setRawMode?.(false);
      stdin.off('data', onData).pause();
    },
  };
}
