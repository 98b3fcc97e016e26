import { InvalidArgumentError } from 'commander';

const ISO_TIME = /^(\d{4})-(\d\d)-(\d\d)T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;

/** Reads an ISO 8601 time with its zone; without one, it would mean another moment on another machine. */
export function parseIsoTime(text: string): Date {
  const [, year, month, day] = ISO_TIME.exec(text) ?? [];
  const time = new Date(text);
  // The parser of JavaScript turns 30 February into 2 March.
  const isDay = Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  if (year === undefined || !isDay || Number.isNaN(time.getTime())) {
    throw new InvalidArgumentError('Write it as an ISO 8601 time with zone, such as 2027-01-31T12:00:00Z.');
  }
  return time;
}
