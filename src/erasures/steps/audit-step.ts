import { redactAudit } from '../../platform/audit/audit.ts';
import { rowStep } from '../erasure-step.ts';

/** Entries of the audit log in which an early version named events, whose ids hold numbers. */
export const auditStep = rowStep('audit log', 'auditEntries', redactAudit);
