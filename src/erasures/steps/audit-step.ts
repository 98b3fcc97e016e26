import { redactAudit } from '../../platform/audit/audit.ts';
import type { ErasureStep } from '../erasure-step.ts';

/** Entries of the audit log in which an early version named events, whose ids hold numbers. */
export const auditStep: ErasureStep = {
  name: 'audit log',
  async erase(trx, { wabaId }) {
    const auditEntries = await redactAudit(trx, wabaId);
    return { after: auditEntries === 0 ? null : '', counts: { auditEntries } };
  },
};
