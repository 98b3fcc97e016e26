import { badge } from '../components/badge.ts';

/** How the pages show the status of a finding. */
export const SIGNS = {
  up: badge('good', 'OK'),
  down: badge('bad', 'Problem'),
  degraded: badge('waiting', 'Attention'),
  unknown: badge('off', 'Unknown'),
};
