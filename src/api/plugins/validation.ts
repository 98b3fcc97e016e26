import type { FastifySchemaCompiler } from 'fastify';
import type { TObject, TSchema } from 'typebox';
import { validatorOf } from '../../platform/schema/validator.ts';
import {
  firstNameIn,
  type SchemaError,
  unknownMemberText,
  wrongValueText,
} from '../../platform/schema/wrong-value.ts';
import { type ApiError, invalidParameter } from '../errors/api-error.ts';

/**
 * Strict validation: bodies are taken as they are, never converted; no body at all is an empty object. Only query strings and path parameters, which
 * are text by nature, have plain decimal integers and booleans read where the schema asks for one. A schema is compiled for
 * its first request: all of them would be half the time of a start.
 */
export const validatorCompiler: FastifySchemaCompiler<TSchema> =
  ({ schema, httpPart }) =>
  (value: unknown) => {
    const validator = validatorOf(schema);
    const read = httpPart === 'body' ? (value ?? {}) : readPlainValues(schema, value);
    if (validator.Check(read)) return { value: read };
    if (httpPart === 'body' && (value ?? null) === null) return { error: missingBody() };
    return { error: schemaError(validator.Errors(read), schema) };
  };

export function missingBody(): ApiError {
  return invalidParameter('', 'The body is missing: send a JSON object.');
}

const INTEGER = /^-?\d{1,15}$/;

function readPlainValues(schema: TSchema, value: unknown): unknown {
  const { properties } = schema as Partial<TObject>;
  if (properties === undefined || typeof value !== 'object' || value === null) return value;
  const read: Record<string, unknown> = { ...value };
  for (const [name, property] of Object.entries(properties)) {
    const text = read[name];
    if (typeof text !== 'string' || !('type' in property)) continue;
    if (property.type === 'integer' && INTEGER.test(text)) read[name] = Number(text);
    if (property.type === 'boolean' && /^(true|false)$/.test(text)) read[name] = text === 'true';
  }
  return read;
}

function schemaError(errors: readonly SchemaError[], schema: TSchema): ApiError {
  const unknown = errors.find((error) => error.keyword === 'additionalProperties');
  if (unknown !== undefined) {
    const param = firstNameIn(unknown, 'additionalProperties');
    return invalidParameter(param, unknownMemberText(param, unknown, schema));
  }
  const path = errors[0]?.instancePath ?? '';
  const wrong = errors.filter((one) => one.instancePath === path);
  const missing = wrong.find((one) => one.keyword === 'required');
  const param = path.slice(1) || (missing === undefined ? '' : firstNameIn(missing, 'requiredProperties'));
  const wrongValue = `The parameter ${wrongValueText(wrong, schema)}.`;
  return invalidParameter(param, missing === undefined ? wrongValue : 'The parameter is missing.');
}
