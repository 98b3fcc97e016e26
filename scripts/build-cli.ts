import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { readToolData } from '../src/mcp/tool-data.ts';

/**
 * Builds heliograph-cli, one file without dependencies, into `dist` of the working directory. What the MCP server knows
 * of the API and its documents is put into it, because users have neither.
 */

const ENTRY = fileURLToPath(new URL('../clients/cli/src/main.ts', import.meta.url));
const TOOL_DATA = fileURLToPath(new URL('../src/mcp/tool-data.ts', import.meta.url));

const text = JSON.stringify(JSON.stringify(readToolData()));
const bundle = await rolldown({
  input: ENTRY,
  platform: 'node',
  plugins: [
    {
      name: 'tool-data',
      load: (id) => (id === TOOL_DATA ? `export const readToolData = () => JSON.parse(${text});` : null),
    },
  ],
});
await bundle.write({ file: 'dist/heliograph.js', format: 'esm', minify: true, codeSplitting: false });
await bundle.close();
