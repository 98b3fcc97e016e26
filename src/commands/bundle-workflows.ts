import { loadWorkflowBundle } from '../worker/workflow-bundle.ts';
import { openLogger } from './logger.ts';

/** Leaves the bundle where the worker looks for it. */
export async function bundleWorkflows(): Promise<void> {
  await loadWorkflowBundle(openLogger({ logLevel: 'info' }, 'bundle-workflows'));
}
