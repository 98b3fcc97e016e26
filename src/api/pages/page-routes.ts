import type { FastifyInstance } from 'fastify';
import type { Config } from '../../platform/config/config.ts';
import { errorPage } from './error-page.ts';
import { homePage } from './home-page.ts';
import { pageStyle } from './html-page.ts';

/** The few pages that need no key. */
export async function pageRoutes(scope: FastifyInstance, { config }: { config: Config }): Promise<void> {
  pageStyle(scope);
  homePage(scope, config);
  errorPage(scope);
}
