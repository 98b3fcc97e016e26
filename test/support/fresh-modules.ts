import { vi } from 'vitest';

/** Before each file: what earlier files of its process left in our modules and in the kits of tests is seen by none. */
vi.resetModules();

/**
 * Fastify looks for the name of each plugin, and it takes each route for one, among all modules of the process. Here they are
 * many, and each file builds servers: it took a twenty-fifth of the time. A plugin that has a name keeps it.
 */
Object.defineProperty(Function.prototype, Symbol.for('fastify.display-name'), {
  value: 'plugin',
  writable: true,
  configurable: true,
});
