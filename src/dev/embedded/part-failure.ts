import type { PartDefinition, PartProcess } from './process-part.ts';

/** A part did not become ready, or crashed too often. The message holds its last log lines. */
export class PartFailedError extends Error {
  readonly part: string;
  constructor(definition: PartDefinition, child: PartProcess | undefined, what: string) {
    super(partReport(definition, child, what));
    this.name = 'PartFailedError';
    this.part = definition.name;
  }
}

/** Start-up was interrupted by a stop. */
export class SupervisorStoppedError extends Error {
  override readonly name = 'SupervisorStoppedError';
}

/** What happened to a part, its last log lines, and where the whole log is. */
export function partReport(definition: PartDefinition, child: PartProcess | undefined, what: string): string {
  const lines = child?.lastLines() ?? [];
  const heading = lines.length === 0 ? `${what}.` : `${what}. Its last lines:`;
  return [
    `${definition.name} ${heading}`,
    ...lines.map((line) => `  | ${line}`),
    `  log: ${definition.logFile}`,
  ].join('\n');
}
