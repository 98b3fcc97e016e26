import packageJson from '../../../package.json' with { type: 'json' };

/** `User-Agent` of this version. */
export const USER_AGENT = `Heliograph/${packageJson.version}`;
