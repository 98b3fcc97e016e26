import type { Setting } from '../src/platform/config/setting.ts';
import { SETTINGS } from '../src/platform/config/settings.ts';

/** The chart sets these itself. */
const OF_THE_CHART = [
  'HELIOGRAPH_API_HOST',
  'HELIOGRAPH_API_PORT',
  'HELIOGRAPH_API_METRICS_PORT',
  'HELIOGRAPH_WORKER_HEALTH_PORT',
  'HELIOGRAPH_HTTPS_PORT',
  'HELIOGRAPH_TLS_CERT_FILE',
  'HELIOGRAPH_TLS_KEY_FILE',
];

/** An installation runs in production mode, where these are refused. */
const OF_DEVELOPMENT = /^HELIOGRAPH_(MODE|WEBHOOK_ALLOW_HTTP|SANDBOX_\w+)$/;

const OBJECT = { type: 'object', additionalProperties: false } as const;

/** What charts/heliograph/values.schema.json says of settings: `settings` by name, and `secrets`. */
export function settingsSchemas() {
  const all = Object.entries(SETTINGS as Record<string, Setting>);
  const free = all.filter(([name]) => !OF_THE_CHART.includes(name) && !OF_DEVELOPMENT.test(name));
  const names = { type: 'string', enum: free.map(([name]) => name) };
  return {
    settings: {
      ...OBJECT,
      required: ['HELIOGRAPH_PUBLIC_URL', 'HELIOGRAPH_TEMPORAL_ADDRESS', 'HELIOGRAPH_OBJECT_STORE_URL'],
      properties: Object.fromEntries(
        free
          .filter(([, setting]) => setting.secret !== true)
          .map(([name, setting]) => [name, schemaOf(setting)]),
      ),
    },
    secretNames: names,
  };
}

/** YAML may have numbers and booleans with or without quotes. */
function schemaOf({ kind, about, choices, minimum, maximum }: Setting) {
  const description = about;
  switch (kind) {
    case 'integer':
      return { description, type: ['integer', 'string'], minimum, maximum, pattern: '^-?\\d+$' };
    case 'boolean':
      return { description, enum: [true, false, 'true', 'false'] };
    case 'choice':
      return { description, enum: choices };
    default:
      return { description, type: 'string' };
  }
}
