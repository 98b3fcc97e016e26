// Receives webhooks with Fastify: each is handled once, and confirmed after the commit.
import { DatabaseSync } from 'node:sqlite';
import { verifyWebhook } from '@heliograph/client';
import Fastify from 'fastify';

const { HELIOGRAPH_WEBHOOK_SECRET: secret, DATABASE = 'receiver.sqlite', PORT = '8000' } = process.env;
if (!secret) throw new Error('set HELIOGRAPH_WEBHOOK_SECRET');
const db = new DatabaseSync(DATABASE);
db.exec(`PRAGMA journal_mode = WAL;
  CREATE TABLE IF NOT EXISTS seen (webhook_id TEXT PRIMARY KEY);
  CREATE TABLE IF NOT EXISTS handled (webhook_id TEXT, event_type TEXT, event_id TEXT)`);

const app = Fastify({ bodyLimit: 8 * 1024 * 1024 });
// The raw bytes: the signature covers them, and not what a parser makes of them.
app.removeAllContentTypeParsers();
app.addContentTypeParser('*', { parseAs: 'buffer' }, async (_request, body) => body);
app.post('/webhooks', async (request, reply) => {
  let event;
  try {
    event = verifyWebhook(request.body ?? '', request.headers, secret);
  } catch (error) {
    return reply.code(401).send(error.message);
  }
  store(request.headers['webhook-id'], event);
  return reply.code(204).send();
});
await app.listen({ port: Number(PORT), host: '127.0.0.1' });

/** Both in one transaction: that it was seen, and what you do about it. An exception is a 500, and the webhook comes again. */
function store(webhookId, event) {
  db.exec('BEGIN IMMEDIATE');
  try {
    const { changes } = db.prepare('INSERT INTO seen VALUES (?) ON CONFLICT DO NOTHING').run(webhookId);
    if (changes === 1) handle(webhookId, event);
    db.exec('COMMIT');
  } catch (error) {
    db.exec('ROLLBACK');
    throw error;
  }
}

function handle(webhookId, { eventType, eventId }) {
  db.prepare('INSERT INTO handled VALUES (?, ?, ?)').run(webhookId, eventType, eventId);
}
