import packageJson from '../../../package.json' with { type: 'json' };

export const USER_AGENT = `Heliograph/${packageJson.version}`;
