import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type Configuration,
  calculatePKCECodeChallenge,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from 'openid-client';
import type { ProvenPerson } from '../../../features/users/oidc-sign-in.ts';
import type { Config } from '../../../platform/config/config.ts';

/** What has to be kept from the start of a sign-in to its end, and must not be changed by the browser. */
export type OidcAttempt = { state: string; nonce: string; verifier: string };

export type OidcClient = {
  /** Where to send the browser; `again`: the provider asks also whom it knows. Rejects when the provider is away. */
  begin(again: boolean): Promise<{ url: string; attempt: OidcAttempt }>;
  /** Who came back from the provider to `pathAndQuery`. Rejects when anything about it is wrong. */
  finish(pathAndQuery: string, attempt: OidcAttempt): Promise<ProvenPerson>;
};

const TIMEOUT_SECONDS = 10;

/** A client by authorization code with PKCE, state and nonce; null when the settings name no provider. */
export function createOidcClient({
  oidc,
  mode,
  api,
}: Pick<Config, 'oidc' | 'mode' | 'api'>): OidcClient | null {
  if (oidc.issuer === '') return null;
  const provider = lazyDiscovery(oidc, mode === 'development');
  return {
    async begin(again) {
      const verifier = randomPKCECodeVerifier();
      const attempt = { state: randomState(), nonce: randomNonce(), verifier };
      const url = buildAuthorizationUrl(await provider(), {
        redirect_uri: `${api.publicUrl}/portal/oidc/callback`,
        scope: 'openid email profile',
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state: attempt.state,
        nonce: attempt.nonce,
        // With max_age, the provider must say when it was that it asked.
        ...(again && { prompt: 'login', max_age: '0' }),
      });
      return { url: url.href, attempt };
    },
    async finish(pathAndQuery, { state, nonce, verifier }) {
      const configuration = await provider();
      const tokens = await authorizationCodeGrant(configuration, new URL(`${api.publicUrl}${pathAndQuery}`), {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new Error('the provider sent no ID token');
      // Many providers tell the address at the userinfo endpoint only.
      const person =
        claims.email === undefined
          ? await fetchUserInfo(configuration, tokens.access_token, claims.sub)
          : claims;
      return {
        issuer: configuration.serverMetadata().issuer,
        subject: claims.sub,
        email: typeof person.email === 'string' ? person.email : null,
        isEmailVerified: person.email_verified === true,
        name: typeof person.name === 'string' ? person.name : null,
        hasSecondFactor: Array.isArray(claims.amr) && claims.amr.includes('mfa'),
        provenAtMs: typeof claims.auth_time === 'number' ? claims.auth_time * 1_000 : null,
      };
    },
  };
}

/** Asks the provider about itself when it is first needed, and again after a failure. */
function lazyDiscovery({ issuer, clientId, clientSecret }: Config['oidc'], isDevelopment: boolean) {
  const insecure = isDevelopment && issuer.startsWith('http:') ? [allowInsecureRequests] : [];
  const options = { execute: [enableNonRepudiationChecks, ...insecure], timeout: TIMEOUT_SECONDS };
  let known: Promise<Configuration> | null = null;
  return async (): Promise<Configuration> => {
    known ??= discovery(new URL(issuer), clientId, clientSecret, undefined, options);
    try {
      return await known;
    } catch (error) {
      known = null;
      throw error;
    }
  };
}
