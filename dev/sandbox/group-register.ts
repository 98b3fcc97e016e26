import { randomBytes } from 'node:crypto';
import type { PhoneNumber } from './demo-accounts.ts';

/** A group of a number and those who are in it. */
export type SandboxGroup = {
  id: string;
  phone: PhoneNumber;
  subject: string;
  description: string;
  state: 'active' | 'suspended';
  createdAt: string;
  /** Phone numbers in digits. */
  members: string[];
};

/** The groups of one server. */
export type GroupRegister = {
  create: (phone: PhoneNumber, settings: { subject: string; description?: string }) => SandboxGroup;
  find: (id: string) => SandboxGroup | undefined;
  all: () => SandboxGroup[];
  ofNumber: (phoneNumberId: string) => SandboxGroup[];
  remove: (id: string) => void;
  /** Whom a message to a group reaches; nobody in a group that nobody made here. */
  recipientOf: (id: string) => GroupRecipient;
};

export type GroupRecipient = { id: string; members: readonly string[] };

/** Ids have the structure of real ones. */
function newGroupId(phone: PhoneNumber): string {
  const number = phone.displayPhoneNumber.replace(/\D/g, '');
  const digits = String(randomBytes(6).readUIntBE(0, 6) % 10 ** 14).padStart(14, '0');
  return `${Buffer.from(`capi_group:${number}:1203${digits}`).toString('base64').replaceAll('=', '')}ZD`;
}

/** Creates a register without groups. */
export function createGroupRegister(now: () => number): GroupRegister {
  const groups = new Map<string, SandboxGroup>();
  return {
    create: (phone, { subject, description = '' }) => {
      const createdAt = new Date(now()).toISOString();
      const id = newGroupId(phone);
      const group: SandboxGroup = {
        id,
        phone,
        subject,
        description,
        createdAt,
        state: 'active',
        members: [],
      };
      groups.set(id, group);
      return group;
    },
    find: (id) => groups.get(id),
    all: () => [...groups.values()],
    ofNumber: (phoneNumberId) =>
      [...groups.values()].filter(({ phone }) => phone.phoneNumberId === phoneNumberId),
    remove: (id) => {
      groups.delete(id);
    },
    recipientOf: (id) => ({ id, members: groups.get(id)?.members ?? [] }),
  };
}
