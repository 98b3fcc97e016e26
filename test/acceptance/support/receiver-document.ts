import { documentBlocks } from '../../support/document-blocks.ts';

/** The command by which docs/tenants/receivers.md starts a receiver. */
export function receiverCommand(name: string): string {
  const block = documentBlocks().find(
    ({ document, marker }) => document === 'receivers.md' && marker === `start: ${name}`,
  );
  if (block === undefined) throw new Error(`receivers.md has no command that starts ${name}`);
  return block.code;
}
