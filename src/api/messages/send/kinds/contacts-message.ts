import { type TProperties, Type } from 'typebox';
import { strict, text } from './schema-parts.ts';

const MAX_CONTACTS = 257;
const Word = Type.Optional(text(1_000));

const listOf = <T extends TProperties>(properties: T) =>
  Type.Optional(Type.Array(strict(properties), { maxItems: 100 }));

const Contact = strict({
  name: strict({
    formatted_name: text(1_000),
    first_name: Word,
    last_name: Word,
    middle_name: Word,
    prefix: Word,
    suffix: Word,
  }),
  phones: listOf({ phone: Word, wa_id: Word, type: Word }),
  emails: listOf({ email: Word, type: Word }),
  addresses: listOf({
    street: Word,
    city: Word,
    state: Word,
    zip: Word,
    country: Word,
    country_code: Word,
    type: Word,
  }),
  org: Type.Optional(strict({ company: Word, department: Word, title: Word })),
  urls: listOf({ url: Word, type: Word }),
  birthday: Type.Optional(Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' })),
});

/** The one content that is a list. */
export const ContactsContent = Type.Array(Contact, { minItems: 1, maxItems: MAX_CONTACTS });
