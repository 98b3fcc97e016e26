import makeSerializerBuilder from '@fastify/fast-json-stringify-compiler';
import type { FastifySerializerCompiler } from 'fastify';
import type { TSchema } from 'typebox';

type Serializer = ReturnType<FastifySerializerCompiler<TSchema>>;

const compile = makeSerializerBuilder()({}, {});
const compiled = new Map<string, Serializer>();

/** As Fastify's own, which takes most of the time of a start. Equal schemas, and both listeners of a process, share one. */
export const serializerCompiler: FastifySerializerCompiler<TSchema> = (route) => {
  const key = JSON.stringify(route.schema);
  const serializer = compiled.get(key) ?? compile({ httpStatus: '', ...route });
  compiled.set(key, serializer);
  return serializer;
};
