import { Type } from 'typebox';
import { OPT_OUT_SCOPES, OPT_OUT_SOURCES } from '../../features/customers/opt-outs.ts';
import { dateTime, named } from '../external/schema-kit.ts';

/** What a customer wants no more, since when and by whose word. */
export const OptOutMark = named('OptOutMark', {
  scope: Type.Enum([...OPT_OUT_SCOPES], { examples: ['marketing'] }),
  source: Type.Enum([...OPT_OUT_SOURCES], { examples: ['upstream'] }),
  since: dateTime('2026-11-20T08:15:00.000Z'),
});
