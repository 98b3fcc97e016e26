import makeSerializerBuilder from '@fastify/fast-json-stringify-compiler';
import type { FastifySerializerCompiler } from 'fastify';
import type { TSchema } from 'typebox';

type Serializer = ReturnType<FastifySerializerCompiler<TSchema>>;
type RouteSchema = Parameters<FastifySerializerCompiler<TSchema>>[0];

const compile = makeSerializerBuilder()({}, {});
const compiled = new Map<string, Serializer>();

/** As Fastify's own, but a schema is compiled for its first response. Equal schemas, and both listeners of a process, share one. */
export const serializerCompiler: FastifySerializerCompiler<TSchema> = (route) => {
  let serializer: Serializer | undefined;
  return (value) => {
    serializer ??= serializerOf(route);
    return serializer(value);
  };
};

function serializerOf(route: RouteSchema): Serializer {
  const key = JSON.stringify(route.schema);
  const serializer = compiled.get(key) ?? compile({ httpStatus: '', ...route });
  compiled.set(key, serializer);
  return serializer;
}
