import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';

/** Routes share schemas, and the two listeners of a process share all. */
const compiled = new WeakMap<TSchema, Validator>();

export function validatorOf(schema: TSchema): Validator {
  const validator = compiled.get(schema) ?? Compile(schema);
  compiled.set(schema, validator);
  return validator;
}
