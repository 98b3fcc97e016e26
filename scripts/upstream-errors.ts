/** `npm run upstream-errors`: writes the page of the upstream platform's error codes. */
import { writeFileSync } from 'node:fs';
import { upstreamErrorsPage } from './upstream-errors-page.ts';

writeFileSync(new URL('../docs/tenants/upstream-errors.md', import.meta.url), upstreamErrorsPage());
