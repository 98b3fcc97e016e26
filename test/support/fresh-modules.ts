import { vi } from 'vitest';

/** Before each file: what earlier files of its process left in our modules and in the kits of tests is seen by none. */
vi.resetModules();
