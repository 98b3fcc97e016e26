import { startTestInfrastructure } from '/work/main/src/embedded/test-infrastructure.ts';
import { migrate, openDatabase } from '/work/main/src/database/database.ts';
import { listConversations } from '/work/main/src/database/conversation-list.ts';
import { listConversationMessages } from '/work/main/src/database/conversation-messages.ts';
import { findInboundMedia } from '/work/main/src/database/message-media.ts';
import { findApiKey } from '/work/main/src/database/api-keys.ts';
const infra = await startTestInfrastructure(() => {});
try {
const db = openDatabase({ url: infra.postgresUrl, poolMax: 2, applicationName: 'explain' });
await migrate(db);
await db.raw(`set statement_timeout=0`);
await db.raw(`
insert into tenants (business_name) select 't' || g from generate_series(1,10) g;
insert into wabas (waba_id, tenant_id) select 'w' || g, g from generate_series(1,10) g;
insert into phone_numbers (phone_number_id, waba_id, display_phone_number, verified_name) select 'p' || g || '_' || n, 'w' || g, '1', 'x' from generate_series(1,10) g, generate_series(1,3) n;
insert into contacts (waba_id, wa_id, user_id) select 'w' || (1 + g % 10), '91' || g, 'u' || g from generate_series(1,100000) g;
insert into conversations (waba_id, phone_number_id, contact_id, last_message_at) select waba_id, 'p' || substr(waba_id,2) || '_' || (case when id % 1000 = 7 then 3 else 1 + id % 2 end), id, now() - random() * interval '90 days' from contacts;
`);
await db.raw(`set statement_timeout=0; insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content, sent_at)
 select c.waba_id, c.phone_number_id, c.id, case when g % 3 = 0 then 'outbound' else 'inbound' end, 'wamid.' || g, 'text', '{"id":"x","text":{"body":"hello hello hello hello"}}', now() from
 (select g, 1 + (case when g % 20 = 0 then 0 else (g::bigint * 7919) % 100000 end) as cid from generate_series(1,1000000) g) x join conversations c on c.id = x.cid;`);
await db.raw(`insert into message_states select phone_number_id, upstream_id, 'read', now() from messages where direction='outbound'`);
await db.raw(`insert into media (message_id, waba_id, upstream_media_id, media_type) select id, waba_id, '1', 'image' from messages where id % 10 = 1`);
await db.raw(`insert into api_keys (waba_id, name, key_hash, prefix, last_four) select 'w' || (1 + g%10), 'n', sha256(g::text::bytea), 'x', 'y' from generate_series(1,10000) g`);
await db.raw(`vacuum analyze`);
console.log((await db.raw('select count(*) from messages')).rows, (await db.raw('select conversation_id, waba_id, count(*) from messages group by 1,2 order by 3 desc limit 1')).rows);
const explain = { raw: async (sql: string, b: unknown) => { const r = await db.raw('explain (analyze, buffers) ' + sql, b as never); console.log(r.rows.map((x: Record<string,string>) => x['QUERY PLAN']).join('\n'), '\n'); return { rows: [] }; } } as never;
const big = (await db.raw(`select conversation_id, waba_id, max(id) as m from messages group by 1,2 order by count(*) desc limit 1`)).rows[0];
console.log('--- messages, big conversation, first page'); await listConversationMessages(explain, big.waba_id, big.conversation_id, { order: 'desc', afterId: null, limit: 26 });
console.log('--- messages, deep page'); await listConversationMessages(explain, big.waba_id, big.conversation_id, { order: 'desc', afterId: '500000', limit: 101 });
console.log('--- asc first'); await listConversationMessages(explain, big.waba_id, big.conversation_id, { order: 'asc', afterId: null, limit: 101 });
const small = (await db.raw(`select conversation_id, waba_id from messages where id = 12345`)).rows[0];
console.log('--- small'); await listConversationMessages(explain, small.waba_id, small.conversation_id, { order: 'desc', afterId: null, limit: 26 });
await db.raw(`insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content)  select waba_id, phone_number_id, conversation_id, direction, 'y' || id, 'text', content from messages where id > 700000; analyze messages`);
console.log('--- 30 percent just inserted, not vacuumed'); await listConversationMessages(explain, big.waba_id, big.conversation_id, { order: 'desc', afterId: null, limit: 26 });
await db.destroy();
} finally { await infra.stop(); }
