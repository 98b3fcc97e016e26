/** `npm run test:room ROOM…`: the unit and integration tests of rooms, those of their doors included. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const PLACES = ['unit', 'unit/api', 'integration', 'integration/api', 'integration/portal'];

const rooms = process.argv.slice(2);
const folders = (room: string) => PLACES.map((place) => `test/${place}/${room}/`).filter(existsSync);
const unknown = rooms.filter((room) => folders(room).length === 0);
if (rooms.length === 0 || unknown.length > 0) {
  const what = unknown.length > 0 ? `There are no tests of ${unknown.join(', ')}` : 'Name a room';
  process.stderr.write(`${what}: npm run test:room ROOM…, such as deliveries.\n`);
  process.exit(2);
}
const projects = ['--project', 'unit', '--project', 'integration'];
const { status } = spawnSync('vitest', ['run', ...projects, ...rooms.flatMap(folders)], { stdio: 'inherit' });
process.exit(status ?? 1);
