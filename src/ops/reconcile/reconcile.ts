import { recordBy } from '../../platform/audit/audit.ts';
import { FILE_LOOKS } from './files.ts';
import { carryOut, type Finding, type ReconcileTools } from './findings.ts';
import { LATER_LOOKS, TABLE_LOOKS } from './tables.ts';
import { WORKFLOW_LOOKS } from './workflows.ts';

const LOOKS = [...TABLE_LOOKS, ...WORKFLOW_LOOKS, ...FILE_LOOKS, ...LATER_LOOKS];

/**
 * As after database, object store or Temporal was restored; with `fix`, what differs is fixed. Each step is small and complete in itself: who is
 * interrupted begins again.
 */
export async function reconcile(tools: ReconcileTools): Promise<Finding[]> {
  const findings: Finding[] = [];
  // A store that was lost as a whole has no bucket.
  if (tools.fix) await tools.objectStore.ensureBucket().catch(() => undefined);
  for (const look of LOOKS) {
    findings.push(await carryOut(look, tools));
  }
  const fixed = findings.filter((finding) => finding.fixed > 0);
  if (fixed.length > 0) {
    await recordBy(tools.database, tools.actor, {
      tenantId: null,
      wabaId: null,
      action: 'installation.reconciled',
      target: 'installation',
      detail: Object.fromEntries(fixed.map((finding) => [finding.kind, finding.fixed])),
    });
  }
  return findings;
}
