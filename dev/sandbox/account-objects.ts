import { randomInt } from 'node:crypto';
import type { JsonObject } from './payloads/webhook-body.ts';

/** What a business has set for one of its numbers. */
export type NumberSettings = {
  profile: JsonObject;
  automation: JsonObject;
  commerce: JsonObject;
  encryption: JsonObject;
  calling: JsonObject;
  /** Null: the number has none. */
  username: string | null;
  /** As they were named: phone numbers or user ids. */
  blocked: Set<string>;
  /** QR codes by their codes. */
  codes: Map<string, JsonObject>;
};

/** A template or a flow of a WABA. */
export type AccountObject = JsonObject & { id: string };

/** Templates or flows: those that every account has, and those that it made. */
type ObjectList = {
  ofWaba: (wabaId: string) => AccountObject[];
  find: (id: string) => AccountObject | undefined;
  make: (wabaId: string, object: JsonObject) => AccountObject;
  /** Changes what every account has for all of them. */
  change: (id: string, members: JsonObject) => void;
  remove: (id: string) => void;
};

export type AccountObjects = {
  numberSettings: (phoneNumberId: string) => NumberSettings;
  templates: ObjectList;
  flows: ObjectList;
};

function newId(): string {
  return `99${String(randomInt(10 ** 12)).padStart(13, '0')}`;
}

function createObjectList(common: readonly AccountObject[]): ObjectList {
  const all = new Map<string, { wabaId: string | null; object: AccountObject }>(
    common.map((object) => [object.id, { wabaId: null, object }]),
  );
  return {
    ofWaba: (wabaId) =>
      [...all.values()]
        .filter((entry) => entry.wabaId === null || entry.wabaId === wabaId)
        .map(({ object }) => object),
    find: (id) => all.get(id)?.object,
    make: (wabaId, members) => {
      const object = { ...members, id: newId() };
      all.set(object.id, { wabaId, object });
      return object;
    },
    change: (id, members) => {
      const entry = all.get(id);
      if (entry !== undefined) entry.object = { ...entry.object, ...members, id };
    },
    remove: (id) => {
      all.delete(id);
    },
  };
}

/** Creates what the accounts of one server have, with these templates for each. */
export function createAccountObjects(templates: readonly AccountObject[]): AccountObjects {
  const numbers = new Map<string, NumberSettings>();
  return {
    templates: createObjectList(templates),
    flows: createObjectList([]),
    numberSettings: (phoneNumberId) => {
      const settings = numbers.get(phoneNumberId) ?? {
        profile: { messaging_product: 'whatsapp', about: 'Mugs, cups and saucers', vertical: 'RETAIL' },
        automation: { enable_welcome_message: false, prompts: [], commands: [] },
        commerce: { is_cart_enabled: true, is_catalog_visible: false },
        encryption: {},
        calling: { status: 'DISABLED' },
        username: null,
        blocked: new Set<string>(),
        codes: new Map<string, JsonObject>(),
      };
      numbers.set(phoneNumberId, settings);
      return settings;
    },
  };
}
