import { openLogger } from '../platform/logger.ts';
import { loadWorkflowBundle } from './workflow-bundle.ts';

/** Leaves the bundle where the worker looks for it. */
export async function bundleWorkflows(): Promise<void> {
  await loadWorkflowBundle(openLogger({ logLevel: 'info' }, 'bundle-workflows'));
}
