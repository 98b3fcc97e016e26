import type { Config } from '../../platform/config/config.ts';
import { openAccountClient } from '../../platform/graph/graph-client.ts';
import { GraphError } from '../../platform/graph/graph-error.ts';
import { type Finding, fail, ok, unlessFine, warn } from './findings.ts';

const WHERE = 'docs/operators/configuration.md';

/** Whether customers can connect numbers in the dialog of the app in the settings. Upstream has no call that says whether its configuration is right. */
export async function lookAtSignupApp({
  config,
}: {
  config: Pick<Config, 'upstream' | 'portal'>;
}): Promise<Finding[]> {
  const { signup } = config.upstream;
  if (signup === null) {
    const names = 'HELIOGRAPH_UPSTREAM_APP_ID and HELIOGRAPH_UPSTREAM_SIGNUP_CONFIG_ID are not set';
    return [ok(`${names}: links have the mode "steps"`)];
  }
  const { appId } = signup;
  const isOurs = await isSecretOf(config, signup);
  const secret = `the first of HELIOGRAPH_UPSTREAM_APP_SECRETS is not the secret of the app ${appId}`;
  return unlessFine(
    ok(`the app ${appId} takes its secret`),
    !isOurs && fail(secret, `correct it, or HELIOGRAPH_UPSTREAM_APP_ID: ${WHERE}`),
    config.portal.productOrigins.length === 0 &&
      warn(
        'no link can be made: none may lead back anywhere',
        'set HELIOGRAPH_PORTAL_PRODUCT_ORIGINS to the origins of your product',
      ),
  );
}

async function isSecretOf(
  config: Pick<Config, 'upstream'>,
  { appId, appSecret }: { appId: string; appSecret: string },
): Promise<boolean> {
  const client = openAccountClient(config);
  try {
    await client.listSubscribedFields(appId, appSecret);
    return true;
  } catch (error) {
    if (!(error instanceof GraphError) || error.transient) throw error;
    return false;
  } finally {
    await client.close();
  }
}
