-- The functions of Heliograph, each once and in its present text. "migrate" applies this file again whenever it has changed
-- (docs/decisions/0046). A function whose parameters or columns change gets a new name, because processes of the release
-- before still call it; a later migration drops the old one.
--
-- Queueing and settling, which every delivery goes through, are functions so that each is one round trip instead of seven,
-- which is most of what they cost at low rates (docs/decisions/0084). They decide nothing but order and ownership; what an
-- attempt means is said in TypeScript. Their plans must not depend on statistics, which a new day's partition does not have.
-- They read their arrays by subscript: an unnest of many arrays starts a function for each, which cost a third of their time.

-- Partitions of days, with the storage settings of the default partition. Housekeeping (src/platform/postgres/partitions.ts) makes
-- those of the days to come without keeping others waiting; this is for an empty database.
create or replace function ensure_partitions(from_day date, to_day date) returns void language plpgsql as $$
declare
  parent text;
  day date;
  storage text;
begin
  foreach parent in array array['inbox', 'events', 'deliveries', 'attempts'] loop
    select coalesce('with (' || array_to_string(c.reloptions, ', ') || ')', '') into storage
      from pg_class c where c.oid = to_regclass(parent || '_default');
    day := from_day;
    while day <= to_day loop
      execute format('create table if not exists %I partition of %I for values from (%L) to (%L) %s',
                     parent || '_' || to_char(day, 'YYYYMMDD'), parent, day, day + 1, storage);
      day := day + 1;
    end loop;
  end loop;
end $$;

-- What is kept of the ids of an erased customer who wants no messages.
create or replace function opt_out_key(of_waba text, person text) returns bytea language plpgsql stable as $$
begin
  return sha256((select salt from erasure_salt) || convert_to('opt-out ' || of_waba || ' ' || person, 'UTF8'));
end $$;

-- Of every id of a customer, and every spelling of the phone.
create or replace function opt_out_keys(contact bigint) returns bytea[] language plpgsql stable as $$
begin
  return array(select opt_out_key(k.waba_id, n.person)
                 from contacts k
                cross join lateral (select k.wa_id union select k.user_id
                                    union select a.phone from phone_aliases a where a.waba_id = k.waba_id and a.wa_id = k.wa_id)
                   as n (person)
                where k.id = contact and n.person <> '');
end $$;

-- Adds to what tenants store what a statement changed in media or media_uploads. Ordered, so that two statements with files
-- of the same tenants do not wait for each other.
create or replace function count_stored_files() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    insert into tenant_usage as u (tenant_id, stored_bytes, stored_files)
    select w.tenant_id, sum(f.bytes), sum(f.files)
      from (select waba_id, coalesce(size_bytes, 0) as bytes, 1 as files from new_files where state in ('stored', 'ready')
            union all
            select waba_id, -coalesce(size_bytes, 0), -1 from old_files where state in ('stored', 'ready')) as f
      join wabas w on w.waba_id = f.waba_id
     group by w.tenant_id having sum(f.bytes) <> 0 or sum(f.files) <> 0
     order by w.tenant_id
    on conflict (tenant_id) do update
       set stored_bytes = u.stored_bytes + excluded.stored_bytes, stored_files = u.stored_files + excluded.stored_files;
  else
    insert into tenant_usage as u (tenant_id, stored_bytes, stored_files)
    select w.tenant_id, -sum(coalesce(f.size_bytes, 0)), -count(*)
      from old_files f join wabas w on w.waba_id = f.waba_id
     where f.state in ('stored', 'ready')
     group by w.tenant_id order by w.tenant_id
    on conflict (tenant_id) do update
       set stored_bytes = u.stored_bytes + excluded.stored_bytes, stored_files = u.stored_files + excluded.stored_files;
  end if;
  return null;
end $$;

-- The country (ISO 3166-1) of a customer: upstream writes it before a user id; a phone number has a calling code. Of a code
-- that several share, the largest. Null: not to be known.
create or replace function country_of(user_id text, phone text) returns text language plpgsql immutable as $$
declare
  codes constant jsonb := '{
  "1":"US","1204":"CA","1226":"CA","1236":"CA","1242":"BS","1246":"BB","1249":"CA","1250":"CA","1257":"CA","1263":"CA",
  "1264":"AI","1268":"AG","1284":"VG","1289":"CA","1306":"CA","1340":"VI","1343":"CA","1345":"KY","1354":"CA",
  "1365":"CA","1367":"CA","1368":"CA","1382":"CA","1403":"CA","1416":"CA","1418":"CA","1428":"CA","1431":"CA",
  "1437":"CA","1438":"CA","1441":"BM","1450":"CA","1460":"CA","1468":"CA","1473":"GD","1474":"CA","1506":"CA",
  "1514":"CA","1519":"CA","1537":"CA","1548":"CA","1557":"CA","1568":"CA","1579":"CA","1581":"CA","1584":"CA",
  "1587":"CA","1600":"CA","1604":"CA","1613":"CA","1639":"CA","1647":"CA","1649":"TC","1658":"JM","1664":"MS",
  "1670":"MP","1671":"GU","1672":"CA","1683":"CA","1684":"AS","1705":"CA","1709":"CA","1721":"SX","1742":"CA",
  "1753":"CA","1758":"LC","1767":"DM","1778":"CA","1780":"CA","1782":"CA","1784":"VC","1787":"PR","1807":"CA",
  "1809":"DO","1819":"CA","1825":"CA","1829":"DO","1849":"DO","1867":"CA","1868":"TT","1869":"KN","1873":"CA",
  "1876":"JM","1879":"CA","1902":"CA","1905":"CA","1939":"PR","1942":"CA","20":"EG","211":"SS","212":"MA","213":"DZ",
  "216":"TN","218":"LY","220":"GM","221":"SN","222":"MR","223":"ML","224":"GN","225":"CI","226":"BF","227":"NE",
  "228":"TG","229":"BJ","230":"MU","231":"LR","232":"SL","233":"GH","234":"NG","235":"TD","236":"CF","237":"CM",
  "238":"CV","239":"ST","240":"GQ","241":"GA","242":"CG","243":"CD","244":"AO","245":"GW","246":"IO","247":"AC",
  "248":"SC","249":"SD","250":"RW","251":"ET","252":"SO","253":"DJ","254":"KE","255":"TZ","256":"UG","257":"BI",
  "258":"MZ","260":"ZM","261":"MG","262":"RE","263":"ZW","264":"NA","265":"MW","266":"LS","267":"BW","268":"SZ",
  "269":"KM","27":"ZA","290":"SH","291":"ER","297":"AW","298":"FO","299":"GL","30":"GR","31":"NL","32":"BE","33":"FR",
  "34":"ES","350":"GI","351":"PT","352":"LU","353":"IE","354":"IS","355":"AL","356":"MT","357":"CY","358":"FI",
  "359":"BG","36":"HU","370":"LT","371":"LV","372":"EE","373":"MD","374":"AM","375":"BY","376":"AD","377":"MC",
  "378":"SM","380":"UA","381":"RS","382":"ME","383":"XK","385":"HR","386":"SI","387":"BA","389":"MK","39":"IT",
  "40":"RO","41":"CH","420":"CZ","421":"SK","423":"LI","43":"AT","44":"GB","45":"DK","46":"SE","47":"NO","48":"PL",
  "49":"DE","500":"FK","501":"BZ","502":"GT","503":"SV","504":"HN","505":"NI","506":"CR","507":"PA","508":"PM",
  "509":"HT","51":"PE","52":"MX","53":"CU","54":"AR","55":"BR","56":"CL","57":"CO","58":"VE","590":"GP","591":"BO",
  "592":"GY","593":"EC","594":"GF","595":"PY","596":"MQ","597":"SR","598":"UY","599":"CW","60":"MY","61":"AU","62":"ID",
  "63":"PH","64":"NZ","65":"SG","66":"TH","670":"TL","672":"NF","673":"BN","674":"NR","675":"PG","676":"TO","677":"SB",
  "678":"VU","679":"FJ","680":"PW","681":"WF","682":"CK","683":"NU","685":"WS","686":"KI","687":"NC","688":"TV",
  "689":"PF","690":"TK","691":"FM","692":"MH","7":"RU","76":"KZ","77":"KZ","81":"JP","82":"KR","84":"VN","850":"KP",
  "852":"HK","853":"MO","855":"KH","856":"LA","86":"CN","880":"BD","886":"TW","90":"TR","91":"IN","92":"PK","93":"AF",
  "94":"LK","95":"MM","960":"MV","961":"LB","962":"JO","963":"SY","964":"IQ","965":"KW","966":"SA","967":"YE",
  "968":"OM","970":"PS","971":"AE","972":"IL","973":"BH","974":"QA","975":"BT","976":"MN","977":"NP","98":"IR",
  "992":"TJ","993":"TM","994":"AZ","995":"GE","996":"KG","998":"UZ"
  }'::jsonb;
begin
  return coalesce(substring(user_id from '^([A-Z]{2})\.'), codes ->> left(phone, 4), codes ->> left(phone, 3),
                  codes ->> left(phone, 2), codes ->> left(phone, 1));
end $$;

-- The text of a member of a JSON text, without the escapes that no such member has; empty where there is none. Upstream writes
-- no spaces between members, and a pattern costs fifty times as much as a search.
create or replace function text_in(given text, name text) returns text language plpgsql immutable as $$
declare
  found text := split_part(split_part(given, '"' || name || '":"', 2), '"', 1);
begin
  if found = '' and strpos(given, '"' || name || '"') > 0 then
    found := coalesce(substring(given from '"' || name || '"\s*:\s*"([^"\\]*)"'), '');
  end if;
  return found;
end $$;

-- The country of whom a status is about; empty where upstream does not say it.
create or replace function country_in(status text, participant text) returns text language plpgsql immutable as $$
begin
  if participant <> '' then
    return coalesce(country_of(participant, participant), '');
  end if;
  return coalesce(country_of(text_in(status, 'recipient_user_id'), ltrim(text_in(status, 'recipient_id'), '+')), '');
end $$;

-- The members of the price that a status has, without spaces; empty where it has none.
create or replace function price_in(status text) returns text language plpgsql immutable as $$
declare
  price text := split_part(split_part(status, '"pricing":{', 2), '}', 1);
begin
  if price = '' and strpos(status, '"pricing"') > 0 then
    price := coalesce(substring(status from '"pricing"\s*:\s*\{([^{}]*)\}'), '');
  end if;
  return translate(price, E' \t\r\n', '');
end $$;

-- A category or type of prices as counts are kept by it: upstream writes one with either sign.
create or replace function price_word(price text, name text) returns text language plpgsql immutable as $$
declare
  word text := replace(lower(text_in(price, name)), '-', '_');
begin
  return case when word ~ '^[a-z_]{1,40}$' then word else '' end;
end $$;

-- The UTC day of what upstream reports; a time that cannot be is not believed.
create or replace function usage_day(at timestamptz, received_at timestamptz) returns date language plpgsql immutable as $$
begin
  return case when at between received_at - interval '840 hours' and received_at + interval '24 hours'
              then at else received_at end at time zone 'utc';
end $$;

-- Counts a status that is to be stored: each message once in each column, in whatever order statuses come. What is known of
-- the message with this status, less what was known without it. A later status implies the earlier ones, but in groups, where
-- upstream reports some of them for all. The highest status that has a price says which, and so with the country; only what was delivered is
-- billable. Each status counts on its own day. Of statuses that retention has deleted only the deduplication keys
-- (src/ingest/intake/dedup-keys.ts) tell: what they implied was counted.
create or replace function count_status() returns trigger language plpgsql set enable_seqscan = off as $$
declare
  ladder constant text[] := array['failed', 'sent', 'delivered', 'read', 'played'];
  rank constant integer := array_position(ladder, new.status);
  stored record;
  n integer;
  -- By place on the ladder; counted: also those that are deleted.
  days date[] := array_fill(null::date, array[5]);
  prices text[] := array_fill(''::text, array[5]);
  countries text[] := array_fill(''::text, array[5]);
  counted boolean[] := array_fill(false, array[5]);
  -- Before and after this status: its days as sent, delivered, read and failed, its price and country.
  facts date[] := array_fill(null::date, array[2, 4]);
  priced text[] := array['', ''];
  located text[] := array['', ''];
begin
  if rank is null then
    return new;
  end if;
  for stored in select m.status, m.at, m.received_at, m.content from message_statuses m
                 where m.phone_number_id = new.phone_number_id and m.upstream_id = new.upstream_id
                   and m.participant = new.participant loop
    n := array_position(ladder, stored.status);
    if n = rank then
      return new;
    end if;
    if n is not null then
      counted[n] := true;
      days[n] := usage_day(stored.at, stored.received_at);
      prices[n] := price_in(stored.content);
      countries[n] := country_in(stored.content, new.participant);
    end if;
  end loop;
  for n in 2 .. rank - 1 loop
    if not counted[n] then
      counted[n] := exists (select from dedup_keys d where d.key = sha256(convert_to(
        '["status",' || to_json(new.phone_number_id) || ',' || to_json(new.upstream_id) || ',"' || ladder[n] || '",'
        || coalesce(to_json(nullif(new.participant, ''))::text, 'null') || ']', 'UTF8'))
          -- Those of this statement are stored one after the other.
          and d.first_seen_at < now() offset 0);
    end if;
  end loop;
  for side in 1 .. 2 loop
    if side = 2 then
      counted[rank] := true;
      days[rank] := usage_day(new.at, new.received_at);
      prices[rank] := price_in(new.content);
      countries[rank] := country_in(new.content, new.participant);
    end if;
    n := array_position(counted[2:5], true);
    facts[side][1] := case when new.participant = '' or n = 1 then days[n + 1] end;
    n := array_position(counted[3:5], true);
    facts[side][2] := days[n + 2];
    facts[side][4] := case when n is null then days[1] end;
    n := array_position(counted[4:5], true);
    facts[side][3] := days[n + 3];
    for n in 1 .. 5 loop
      priced[side] := case when prices[n] <> '' then prices[n] else priced[side] end;
      located[side] := case when countries[n] <> '' then countries[n] else located[side] end;
    end loop;
  end loop;
  for side in 1 .. 2 loop
    for n in 1 .. 4 loop
      if facts[side][n] is not null and (facts[1][n], priced[1], located[1]) is distinct from (facts[2][n], priced[2], located[2]) then
        insert into usage_changes (waba_id, day, phone_number_id, category, pricing_type, country,
                                   sent, delivered, read, failed, billable)
        select p.waba_id, facts[side][n], new.phone_number_id, price_word(priced[side], 'category'),
               price_word(priced[side], 'type'), located[side], sign * (n = 1)::integer, sign * (n = 2)::integer,
               sign * (n = 3)::integer, sign * (n = 4)::integer,
               -- Upstream is giving up the member; then the type says it.
               sign * (n = 2 and (strpos(priced[side], '"billable":true') > 0
                                  or strpos(priced[side], '"billable"') = 0 and strpos(priced[side], '"type":"regular"') > 0))::integer
          from phone_numbers p, (values (2 * side - 3)) as s (sign)
         where p.phone_number_id = new.phone_number_id;
      end if;
    end loop;
  end loop;
  return new;
end $$;

-- Counts what a customer wrote, on its day, and not again a message whose placeholder counted.
create or replace function count_received() returns trigger language plpgsql set enable_seqscan = off as $$
begin
  if new.placeholder or not exists (select from dedup_keys d where d.key = sha256(convert_to(
       '["message",' || to_json(new.phone_number_id) || ',' || to_json(new.upstream_id) || ',"placeholder"]', 'UTF8')) offset 0) then
    insert into usage_changes (waba_id, day, phone_number_id, category, pricing_type, country, received)
    select new.waba_id, usage_day(new.sent_at, new.created_at), new.phone_number_id, '', '',
           coalesce(country_of(c.user_id, c.wa_id), country_of(new.group_sender, new.group_sender), ''), 1
      from conversations v left join contacts c on c.id = v.contact_id
     where v.id = new.conversation_id;
  end if;
  return null;
end $$;

-- Entries of the audit log stay as they are, and so does their chain.
create or replace function refuse_audit_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name;
end $$;

-- The detail of an entry without the id of an event.
create or replace function redacted_audit_detail(detail jsonb) returns jsonb language sql immutable as $$
  select detail - 'eventId' || '{"erased": "eventId"}'
$$;

-- An entry goes only when its link says by which retention, and loses only the id of an event, when its link says so.
create or replace function keep_audit_entry() returns trigger language plpgsql as $$
declare
  link record;
begin
  select * into link from audit_chain c where c.entry_id = old.id;
  if tg_op = 'DELETE' then
    if link.expired_by is not null then
      return old;
    end if;
  elsif link.redacted_by is not null
    and to_jsonb(new) = to_jsonb(old) || jsonb_build_object('detail', redacted_audit_detail(old.detail)) then
    return new;
  end if;
  raise exception 'audit_log is append-only';
end $$;

-- Of a link nothing changes but that its entry went by retention, or was redacted.
create or replace function keep_audit_link() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    if to_jsonb(new) - 'expired_by' = to_jsonb(old) - 'expired_by' and old.expired_by is null
      or to_jsonb(new) - 'redacted_by' = to_jsonb(old) - 'redacted_by' and old.redacted_by is null then
      return new;
    end if;
  end if;
  raise exception 'audit_chain is append-only';
end $$;

-- Removes the oldest entries of a tenant that are older than its policy says, up to `most`; returns how many. Their links
-- stay, so the chain can be verified, and an entry without a tenant notes how many went and a hash over theirs. Belongs to the
-- owner: the application's role has no other way to remove an entry, and none for one of the last 30 days.
create or replace function expire_audit_entries(of_tenant bigint, most integer) returns integer
  language plpgsql security definer set search_path = public, pg_temp set timezone = 'UTC' as $$
declare
  until timestamptz;
  gone bigint[];
  noted bigint;
begin
  select now() - greatest(p.audit_days, 30) * interval '1 day' into until
    from tenant_policies p where p.tenant_id = of_tenant and p.audit_days is not null;
  select array_agg(o.id) into gone
    from (select a.id, a.at from audit_log a where a.tenant_id = of_tenant order by a.id limit most) as o
    join audit_chain c on c.entry_id = o.id
   where o.at < until;
  if gone is null then
    return 0;
  end if;
  insert into audit_log (actor, action, target, detail)
  select 'system', 'audit.expired', 'tenant ' || of_tenant,
         jsonb_build_object('entries', count(*), 'before', until,
                            'hash', encode(sha256(string_agg(c.hash, ''::bytea order by c.position)), 'hex'))
    from audit_chain c where c.entry_id = any (gone)
  returning id into noted;
  update audit_chain set expired_by = noted where entry_id = any (gone);
  delete from audit_log where id = any (gone);
  return cardinality(gone);
end $$;

-- Takes the ids of events out of up to `most` entries of a WABA, because they hold phone numbers; returns how many. Their
-- links stay with the hashes of the entries as they were written, and for each entry one without a tenant notes the hash of the
-- rest, so the chain can be verified. Two at a time wait for each other, so that an entry is noted once. Belongs to the owner: the application's role cannot change anything else in an entry.
create or replace function redact_audit_entries(of_waba text, most integer) returns integer
  language plpgsql security definer set search_path = public, pg_temp set timezone = 'UTC' as $$
declare
  entry record;
  noted bigint;
  redacted integer := 0;
begin
  for entry in
    select a.* from audit_log a
     where a.waba_id = of_waba and a.action = 'delivery.dropped' and a.detail -> 'eventId' is not null
       and exists (select from audit_chain c where c.entry_id = a.id)
     limit most for update of a
  loop
    entry.detail := redacted_audit_detail(entry.detail);
    insert into audit_log (actor, action, target, detail)
    values ('system', 'audit.redacted', 'entry ' || entry.id,
            jsonb_build_object('hash', encode(sha256(convert_to(audit_entry_text(to_jsonb(entry)), 'UTF8')), 'hex')))
    returning id into noted;
    update audit_chain set redacted_by = noted where entry_id = entry.id;
    update audit_log set detail = entry.detail where id = entry.id;
    redacted := redacted + 1;
  end loop;
  return redacted;
end $$;

-- An entry as it is hashed and exported. A column that a later release adds must be left out where it is null, so that the
-- hashes of earlier entries hold.
create or replace function audit_entry_text(entry jsonb) returns text language sql immutable as $$
  select jsonb_build_object(
    'id', entry -> 'id', 'at', entry -> 'at', 'tenantId', entry -> 'tenant_id', 'wabaId', entry -> 'waba_id',
    'actor', entry -> 'actor', 'actorUserId', entry -> 'actor_user_id', 'byOperator', entry -> 'by_operator',
    'action', entry -> 'action', 'target', entry -> 'target', 'detail', entry -> 'detail',
    'requestId', entry -> 'request_id', 'ip', entry -> 'ip')::text
$$;

-- Links an entry to the one before: its hash is over that one's hash and its own text. Runs at the commit, so the lock that
-- puts entries in one order is held for as long as a commit takes (docs/decisions/0064). Belongs to the owner: the
-- application's role has no way into the chain but this.
create or replace function chain_audit_entry() returns trigger language plpgsql security definer
  set search_path = public, pg_temp set timezone = 'UTC' as $$
declare
  last_position bigint;
  last_hash bytea;
begin
  perform pg_advisory_xact_lock(7340006);
  select c.position, c.hash into last_position, last_hash from audit_chain c order by c.position desc limit 1;
  insert into audit_chain (position, entry_id, hash)
  values (coalesce(last_position, 0) + 1, new.id,
          sha256(coalesce(last_hash, '') || convert_to(audit_entry_text(to_jsonb(new)), 'UTF8')));
  return null;
end $$;

-- The chain behind a position, with the entries as they are now; null: the entry is gone.
create or replace function audit_chain_after(after_position bigint, most integer)
  returns table (at_position bigint, entry_id bigint, chained_hash bytea, expired_by bigint, redacted_by bigint,
                 entry_text text)
  language plpgsql stable set timezone = 'UTC' as $$
begin
  return query
    select c.position, c.entry_id, c.hash, c.expired_by, c.redacted_by, case when a.id is not null then audit_entry_text(to_jsonb(a)) end
      from audit_chain c left join audit_log a on a.id = c.entry_id
     where c.position > after_position order by c.position limit most;
end $$;

-- What the application's role may do with the audit log, if there is such a role: read it, add entries, whose id and time
-- the database sets, apply the retention of tenants, and take ids of events out. Also called by deploy/postgres/roles.sql.
create or replace function protect_audit_log() returns void language plpgsql as $$
begin
  if exists (select from pg_roles where rolname = 'heliograph_app') then
    revoke all on audit_log, audit_chain from heliograph_app;
    grant select on audit_log, audit_chain to heliograph_app;
    grant insert (tenant_id, waba_id, actor, actor_user_id, by_operator, action, target, detail, request_id, ip)
      on audit_log to heliograph_app;
    revoke execute on function expire_audit_entries(bigint, integer), redact_audit_entries(text, integer) from public;
    grant execute on function expire_audit_entries(bigint, integer), redact_audit_entries(text, integer)
      to heliograph_app;
  end if;
end $$;

-- The kind of event by which a head blocks others while it is retried.
create or replace function blocking_kind(event_day date, event_uuid uuid) returns text language plpgsql stable as $$
begin
  return case when exists (select from events ev where ev.day = event_day and ev.id = event_uuid
                              and ev.event_type = 'order') then 'order' else 'other' end;
end $$;

-- The same if others wait behind the head of this lane, else null. It sees what was committed before the statement that
-- calls it, so the head must have been locked by an earlier one.
create or replace function blocks_now(head_endpoint bigint, head_lane text, event_day date, event_uuid uuid) returns text
  language plpgsql stable as $$
begin
  return case when exists (select from delivery_queue b where b.endpoint_id = head_endpoint and b.lane = head_lane
                              and b.state = 'queued') then blocking_kind(event_day, event_uuid) end;
end $$;

-- Queues deliveries in the order given; returns the ids of those that became the heads of their lanes. firsts: which of
-- them is the first of its lane among them.
--
-- The insert of a head either succeeds or meets the present head and locks it, so no other can finish that head before the
-- rows behind it are visible to the promotion that follows. Positions of waiting rows are drawn under that lock, hence
-- their order is the order in which their transactions took the lane. Heads are locked in one order over all writers, so
-- they cannot deadlock. A row that met the present head of its lane is an update of that head, so its xmax is this
-- transaction's lock: that tells the new heads from the others.
--
-- Nested loops are off because the join is over as many rows as there are deliveries, whatever the planner expects.
create or replace function enqueue_deliveries(
  endpoint_ids bigint[], lanes text[], are_released boolean[], replays boolean[], delivery_days date[],
  delivery_ids uuid[], event_days date[], event_uuids uuid[],
  firsts boolean[], claimed boolean[], claim_token uuid, lease_ms double precision
) returns uuid[] language plpgsql set enable_hashjoin = on set enable_nestloop = off as $$
#variable_conflict use_column
declare
  heads uuid[];
begin
  with inserted as (
    insert into delivery_queue (endpoint_id, lane, state, released, replay, delivery_day, delivery_id, event_day,
                                event_uuid, token, lease_until)
    select endpoint_ids[n], lanes[n],
           case when claimed[n] then 'claimed' when are_released[n] then 'due' else 'unreleased' end,
           are_released[n], replays[n], delivery_days[n], delivery_ids[n], event_days[n], event_uuids[n],
           case when claimed[n] then claim_token end,
           case when claimed[n] then clock_timestamp() + lease_ms * interval '1 millisecond' end
      from generate_subscripts(delivery_ids, 1) as n where firsts[n] order by endpoint_ids[n], lanes[n]
    on conflict (endpoint_id, lane) where state <> 'queued' do update
       set lane = excluded.lane,
           blocks = case when delivery_queue.state = 'retrying' and delivery_queue.blocks is null
                         then blocking_kind(delivery_queue.event_day, delivery_queue.event_uuid)
                         else delivery_queue.blocks end,
           -- What was queued behind a buffered message may end its wait.
           next_attempt_at = case when delivery_queue.state <> 'unreleased' then delivery_queue.next_attempt_at end
    returning delivery_id, xmax = 0 as is_new
  )
  select array_agg(i.delivery_id) into heads from inserted i where i.is_new;
  if coalesce(cardinality(heads), 0) < cardinality(delivery_ids) then
    insert into delivery_queue (endpoint_id, lane, state, released, replay, delivery_day, delivery_id, event_day,
                                event_uuid)
    select endpoint_ids[n], lanes[n], 'queued', are_released[n], replays[n], delivery_days[n], delivery_ids[n],
           event_days[n], event_uuids[n]
      from generate_subscripts(delivery_ids, 1) as n
      left join unnest(heads) as h (delivery_id) on h.delivery_id = delivery_ids[n]
     where h.delivery_id is null
     order by n;
  end if;
  return heads;
end $$;

-- Numbers events within their keys (1, 2, 3 … in the order given; a key's row stays locked until commit, so numbers follow
-- the order in which events are stored), stores them with their deliveries and queues these. A message's id may be left to
-- be found by its upstream id. Returns the heads as enqueue_deliveries does, and the last number of each key. Wakes the
-- dispatchers only for heads that were not claimed.
--
-- keys: each once, with how many of the events have it, in the one order in which all lock them. event_keys: the place of
-- each event's key among them; events_behind: how many of the events come later in that key.
create or replace function publish_events(
  key_wabas text[], keys text[], key_events integer[], event_keys integer[], events_behind integer[],
  days date[], ids uuid[], waba_ids text[], tenant_ids bigint[], phone_number_ids text[], event_types text[],
  event_ids text[], conversation_ids bigint[], message_ids bigint[], upstream_ids text[],
  bodies bytea[], made_at timestamptz,
  delivery_wabas text[], endpoint_ids bigint[], lanes text[], delivery_days date[], delivery_ids uuid[],
  event_days date[], event_uuids uuid[], are_released boolean[],
  firsts boolean[], claimed boolean[], claim_token uuid, lease_ms double precision,
  out heads uuid[], out last_numbers bigint[]
) language plpgsql as $$
#variable_conflict use_column
declare
  floor bigint := coalesce((select f.last_sequence from ordering_key_floor f where f.ends_at > now()), 0);
  drawn_keys text[];
begin
  with drawn as (
    insert into ordering_keys (waba_id, key, last_sequence)
    select key_wabas[n], keys[n], floor + key_events[n] from generate_subscripts(keys, 1) as n
    on conflict (waba_id, key) do update
       set last_sequence = ordering_keys.last_sequence + excluded.last_sequence - floor, used_month = excluded.used_month
    returning key, last_sequence
  )
  select array_agg(d.key), array_agg(d.last_sequence) into drawn_keys, last_numbers from drawn d;
  if drawn_keys is distinct from keys then
    raise exception 'the numbers of ordering keys did not come back in their order';
  end if;
  insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence,
                      conversation_id, message_id, body, occurred_at)
  select days[n], ids[n], waba_ids[n], tenant_ids[n], phone_number_ids[n], event_types[n], event_ids[n],
         keys[event_keys[n]], last_numbers[event_keys[n]] - events_behind[n], conversation_ids[n],
         coalesce(message_ids[n], (select m.id from messages m
                                    where m.phone_number_id = phone_number_ids[n] and m.upstream_id = upstream_ids[n])),
         bodies[n], case when bodies[n] is not null then made_at end
    from generate_subscripts(ids, 1) as n;
  if cardinality(delivery_ids) = 0 then
    return;
  end if;
  insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid)
  select delivery_days[n], delivery_ids[n], delivery_wabas[n], endpoint_ids[n], event_days[n], event_uuids[n]
    from generate_subscripts(delivery_ids, 1) as n;
  heads := enqueue_deliveries(endpoint_ids, lanes, are_released, array_fill(false, array[cardinality(delivery_ids)]),
                              delivery_days, delivery_ids, event_days, event_uuids, firsts, claimed, claim_token, lease_ms);
end $$;

-- Moves the states of messages forward by these statuses, in the order given; kept: the states in which a message stays,
-- separated by commas, null for any.
create or replace function move_message_states(
  phone_number_ids text[], message_ids text[], statuses text[], times timestamptz[], kept text[]
) returns void language plpgsql as $$
begin
  for n in 1 .. coalesce(cardinality(statuses), 0) loop
    insert into message_states as s (phone_number_id, upstream_id, status, status_at)
    values (phone_number_ids[n], message_ids[n], statuses[n], times[n])
    on conflict (phone_number_id, upstream_id) do update set status = excluded.status, status_at = excluded.status_at
     where s.status <> all (string_to_array(kept[n], ','));
  end loop;
end $$;

-- Ingests bodies with plain messages and statuses, of customers who are known or never wrote: locks their shards, compares
-- what intake remembers with what is stored, and stores bodies, messages, statuses, events and deliveries. Each statement
-- sees what was committed before it began, so the comparison is made behind the locks. The parameters from `key_wabas` on,
-- one event for each item, and the result are those of publish_events. Without numbers nothing is stored: another
-- transaction has a shard, something is not as remembered, or an item came before or tells of a send that is still open.
--
-- lock_classes: those of intake, customers, publishing and order scopes. shards: in ascending order, each with its epoch and
-- the id from which on older bodies are looked for. endpoints: of each WABA, id, version and mode of each of its endpoints
-- (processes of the release before give no mode, which is never as stored: they take the usual way).
-- person_ids: the contact of each item, null where there is none. are_new: the sender is to be stored, and the
-- conversation, under the ids given; several messages of one say the same about it. Members of messages are null for
-- statuses, which have their own arrays from status_numbers on. marked_ids: the message that a status names as sent by us.
-- What is compared is asked for row by row, by its key, whatever the planner expects.
create or replace function ingest_items(
  lock_classes integer[], wait_ms integer, shards integer[], epochs bigint[], from_ids bigint[], from_day date,
  wabas text[], endpoints text[],
  body_wabas text[], body_shards smallint[], raw_bodies bytea[], signed_for text[],
  are_new boolean[], person_ids bigint[], user_ids text[], wa_ids text[], parent_user_ids text[], profile_names text[], usernames text[],
  item_keys bytea[], erased_names text[], erased_marks text[], marked_ids bigint[],
  message_types text[], contents text[], context_ids text[], target_ids text[], sent_times timestamptz[],
  status_numbers text[], status_ids text[], statuses text[], status_times timestamptz[], status_contents text[], states_kept text[],
  key_wabas text[], keys text[], key_events integer[], event_keys integer[], events_behind integer[],
  days date[], ids uuid[], waba_ids text[], tenant_ids bigint[], phone_number_ids text[], event_types text[],
  event_ids text[], conversation_ids bigint[], message_ids bigint[], upstream_ids text[],
  bodies bytea[], made_at timestamptz,
  delivery_wabas text[], endpoint_ids bigint[], lanes text[], delivery_days date[], delivery_ids uuid[],
  event_days date[], event_uuids uuid[], are_released boolean[],
  firsts boolean[], claimed boolean[], claim_token uuid, lease_ms double precision,
  out heads uuid[], out last_numbers bigint[]
) language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
declare
  one_shard integer;
  one_waba text;
  -- An assignment starts no executor, as perform does.
  is_done boolean;
  published record;
begin
  is_done := set_config('lock_timeout', wait_ms::text, true) is not null;
  foreach one_shard in array shards loop
    if not pg_try_advisory_xact_lock(lock_classes[1], one_shard) then
      return;
    end if;
  end loop;
  foreach one_shard in array shards loop
    is_done := pg_advisory_xact_lock(lock_classes[2], one_shard) is null;
  end loop;
  is_done := pg_advisory_xact_lock_shared(lock_classes[3]::bigint) is null;
  foreach one_waba in array wabas loop
    is_done := pg_advisory_xact_lock_shared(lock_classes[4], order_scope_group(one_waba)) is null;
  end loop;
  if exists (
       select from generate_subscripts(shards, 1) as n
        where (select e.epoch from intake_epochs e where e.shard = shards[n]) is distinct from epochs[n]
           or exists (select from inbox i where i.received_day >= from_day and i.state = 'new' and i.shard = shards[n]
                         and i.id >= from_ids[n] offset 0))
     or exists (
       select from generate_subscripts(wabas, 1) as n
        where endpoints[n] <> (select coalesce(string_agg(w.id || ' ' || w.version || ' ' || h.mode, ',' order by w.id), '')
                                 from webhook_endpoints w join endpoint_health h on h.endpoint_id = w.id where w.waba_id = wabas[n]))
     or exists (
       select from generate_subscripts(item_keys, 1) as n
        where person_ids[n] is not null and not are_new[n]
              and (not exists (select from contacts c where c.id = person_ids[n] and c.waba_id = waba_ids[n]
                                  and array[c.user_id, c.wa_id, c.parent_user_id, c.profile_name, c.username]
                                    = array[user_ids[n], wa_ids[n], parent_user_ids[n], profile_names[n], usernames[n]]
                                offset 0)
                   or not exists (select from conversations v where v.id = conversation_ids[n] and v.merged_into is null
                                     and v.contact_id = person_ids[n] and v.phone_number_id = phone_number_ids[n] offset 0))
           or exists (select from dedup_keys d where d.key = item_keys[n] offset 0)
           or exists (select from messages m where m.phone_number_id = phone_number_ids[n]
                         and m.upstream_id = upstream_ids[n] offset 0)
           or exists (select from erased_items e where e.key = sha256(
                        (select salt from erasure_salt) || convert_to(erased_names[n], 'UTF8')) offset 0)) then
    return;
  end if;
  if (true = any (are_new) or array_position(person_ids, null) is not null)
     and exists (
       select from generate_subscripts(item_keys, 1) as n
        where (are_new[n] or person_ids[n] is null)
          and (exists (select from contacts c where c.waba_id = waba_ids[n] and c.user_id = user_ids[n] offset 0)
               or exists (select from contacts c where c.waba_id = waba_ids[n] and c.wa_id = wa_ids[n] offset 0)
               or exists (select from phone_aliases a where a.waba_id = waba_ids[n] and a.phone = wa_ids[n] offset 0))) then
    return;
  end if;
  if cardinality(statuses) > 0
     and exists (
       select from generate_subscripts(item_keys, 1) as n
        where exists (select from outbound_messages o
                       where o.message_id = marked_ids[n] and o.phone_number_id = phone_number_ids[n]
                         and o.state in ('queued', 'sending', 'unknown') offset 0)
           or exists (select from erased_items e where e.key = sha256(
                        (select salt from erasure_salt) || convert_to(erased_marks[n], 'UTF8')) offset 0)) then
    return;
  end if;
  if true = any (are_new) then
    insert into contacts (id, waba_id, user_id, parent_user_id, wa_id, profile_name, username)
    select distinct on (person_ids[n]) person_ids[n], waba_ids[n], user_ids[n], parent_user_ids[n], wa_ids[n],
           profile_names[n], usernames[n]
      from generate_subscripts(item_keys, 1) as n where are_new[n] order by person_ids[n];
    insert into conversations (id, waba_id, phone_number_id, contact_id, last_message_at)
    select distinct on (conversation_ids[n]) conversation_ids[n], waba_ids[n], phone_number_ids[n], person_ids[n],
           clock_timestamp()
      from generate_subscripts(item_keys, 1) as n where are_new[n] order by conversation_ids[n];
  end if;
  insert into dedup_keys (key) select k from unnest(item_keys) as k order by k;
  insert into inbox (waba_id, shard, body, signed_for, state, processed_at)
  select body_wabas[n], body_shards[n], raw_bodies[n], string_to_array(signed_for[n], '+'), 'done', now()
    from generate_subscripts(raw_bodies, 1) as n;
  if cardinality(statuses) > 0 then
    insert into message_statuses (phone_number_id, upstream_id, status, participant, at, content)
    select status_numbers[n], status_ids[n], statuses[n], '', status_times[n], status_contents[n]
      from generate_subscripts(statuses, 1) as n
    on conflict do nothing;
    is_done := move_message_states(status_numbers, status_ids, statuses, status_times, states_kept) is null;
  end if;
  if cardinality(statuses) < cardinality(item_keys) then
    update conversations set last_message_at = clock_timestamp()
     where id = any (array(select conversation_ids[n] from generate_subscripts(item_keys, 1) as n
                            where message_types[n] is not null and not are_new[n]));
    insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content, context_id,
                          target_id, sent_at)
    select waba_ids[n], phone_number_ids[n], conversation_ids[n], 'inbound', upstream_ids[n], message_types[n],
           contents[n], context_ids[n], target_ids[n], sent_times[n]
      from generate_subscripts(item_keys, 1) as n where message_types[n] is not null;
  end if;
  published := publish_events(
    key_wabas, keys, key_events, event_keys, events_behind, days, ids, waba_ids, tenant_ids, phone_number_ids,
    event_types, event_ids, conversation_ids, message_ids, upstream_ids, bodies, made_at, delivery_wabas, endpoint_ids,
    lanes, delivery_days, delivery_ids, event_days, event_uuids, are_released, firsts, claimed, claim_token, lease_ms);
  heads := published.heads;
  last_numbers := published.last_numbers;
end $$;

-- Makes the oldest waiting delivery of each of these lanes its head, and returns the new heads. The one way up for a
-- waiting delivery. With a token what may be sent is claimed at once.
--
-- The former heads have been locked, and taken out of their lanes, by an earlier statement of the same transaction. This
-- statement's snapshot is younger than those locks, so it sees everything that was queued behind the heads until then; and
-- while they are locked, nothing is queued behind them.
--
-- The first of a lane is asked for by the range and the order of its index: with `lane =` the planner may walk all that
-- waits by position, once it knows how much that is. A bitmap would hold the whole lane. The range begins behind the former
-- head's position, else it reads all that went through the lane since the oldest snapshot.
create or replace function promote_behind(
  endpoint_ids bigint[], lanes text[], positions bigint[], claim_token uuid, lease_ms double precision
) returns table (delivery_id uuid, state text) language plpgsql set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
  return query
    update delivery_queue q
       set state = case when not q.released then case when q.replay then 'suspended' else 'unreleased' end
                        when claim_token is null then 'due' else 'claimed' end,
           token = case when q.released then claim_token end,
           lease_until = case when q.released and claim_token is not null
                              then clock_timestamp() + lease_ms * interval '1 millisecond' end
     where q.state = 'queued' and q.position = any (array(
       select (select n.position from delivery_queue n
                where (n.endpoint_id, n.lane, n.position) > (l.endpoint_id, l.lane, l.position)
                  and (n.endpoint_id, n.lane) <= (l.endpoint_id, l.lane) and n.state = 'queued'
                order by n.endpoint_id, n.lane, n.position limit 1)
         from unnest(endpoint_ids, lanes, positions) as l (endpoint_id, lane, position)))
    returning q.delivery_id, q.state;
end $$;

-- Makes a reserved event's deliveries claimable, where they are heads; those behind follow when promoted.
--
-- The heads of their lanes are locked first, in the order in which all lock heads: attempts on those are recorded a
-- moment later, and nothing that is recorded waits for a row that it promotes. Where a head was settled while it was
-- waited for, the lane has another one by now, which must not be locked out of turn: all locks are let go, and it begins
-- again.
create or replace function release_event(event uuid) returns void language plpgsql as $$
declare
  heads bigint[];
begin
  loop
    begin
      select array_agg(l.position) into heads from (
        select h.position from delivery_queue h
         where h.state <> 'queued' and (h.endpoint_id, h.lane) in (
                 select r.endpoint_id, r.lane from delivery_queue r
                  where r.event_uuid = event and not r.released and not r.replay)
         order by h.endpoint_id, h.lane for update of h) as l;
      exit when not exists (
        select from delivery_queue r
          join delivery_queue h on h.endpoint_id = r.endpoint_id and h.lane = r.lane and h.state <> 'queued'
         where r.event_uuid = event and not r.released and not r.replay
           and h.position <> all (coalesce(heads, '{}')));
      raise exception using errcode = 'HG001';
    exception when sqlstate 'HG001' then
      null;
    end;
  end loop;
  update delivery_queue set released = true, state = case when state = 'unreleased' then 'due' else state end
   where position = any (array(select position from delivery_queue
                                where event_uuid = event and not released and not replay order by position for update));
end $$;

-- Takes deliveries out of the queue for good, lets the next of each lane go whose head was among them, and writes into the
-- log that they were dropped, with the reason. The one way out for what is not settled by an attempt. Returns the ids of
-- those that were taken out.
--
-- The heads of their lanes are locked first, in the order in which all lock heads. Until the transaction ends,
-- those are not settled and nothing is queued behind them, and only statements after that see all that was queued there before. What
-- stays: what is being attempted, except under one of `tokens` or with `under_way_too`; and lanes whose head was
-- settled while it was waited for, or, without `waits`, is locked.
create or replace function remove_deliveries(
  ids uuid[], reason text, tokens uuid[], under_way_too boolean, waits boolean
) returns uuid[] language plpgsql set enable_hashjoin = on as $$
#variable_conflict use_column
declare
  lane_endpoints bigint[];
  lane_names text[];
  removed uuid[];
  days date[];
  batched uuid[];
  attempt_counts integer[];
  headless_endpoints bigint[];
  headless_lanes text[];
  headless_positions bigint[];
  due_lanes integer;
  log_day date;
begin
  if waits then
    select array_agg(l.endpoint_id), array_agg(l.lane) into lane_endpoints, lane_names from (
      select h.endpoint_id, h.lane from delivery_queue h
       where h.state <> 'queued' and (h.endpoint_id, h.lane) in (
               select q.endpoint_id, q.lane from delivery_queue q where q.delivery_id = any (ids))
       order by h.endpoint_id, h.lane for update of h) as l;
  else
    select array_agg(l.endpoint_id), array_agg(l.lane) into lane_endpoints, lane_names from (
      select h.endpoint_id, h.lane from delivery_queue h
       where h.state <> 'queued' and (h.endpoint_id, h.lane) in (
               select q.endpoint_id, q.lane from delivery_queue q where q.delivery_id = any (ids))
       order by h.endpoint_id, h.lane for update of h skip locked) as l;
  end if;
  with gone as (
    delete from delivery_queue q
     using unnest(lane_endpoints, lane_names) as l (endpoint_id, lane)
     where q.delivery_id = any (ids) and q.endpoint_id = l.endpoint_id and q.lane = l.lane
       and (under_way_too or q.state <> 'claimed' or q.lease_until <= (select clock_timestamp()) or q.token = any (tokens))
    returning q.delivery_id, q.delivery_day, q.attempts, q.endpoint_id, q.lane, q.position, q.state, q.batch
  )
  select array_agg(g.delivery_id), array_agg(g.delivery_day), array_agg(g.attempts),
         (select array_agg(b.id) from gone o, unnest(o.batch) as b (id)),
         array_agg(g.endpoint_id) filter (where g.state <> 'queued'), array_agg(g.lane) filter (where g.state <> 'queued'),
         array_agg(g.position) filter (where g.state <> 'queued')
    into removed, days, attempt_counts, batched, headless_endpoints, headless_lanes, headless_positions from gone g;
  if headless_lanes is not null then
    select count(*) into due_lanes
      from promote_behind(headless_endpoints, headless_lanes, headless_positions, null, null) p where p.state = 'due';
    if due_lanes > 0 then
      perform pg_notify('heliograph_deliveries', '');
    end if;
  end if;
  for log_day in select distinct d from unnest(days) as d loop
    update deliveries d
       set state = 'dropped', attempts = r.attempts, last_error = reason, next_attempt_at = null,
           finished_at = clock_timestamp()
      from unnest(removed, days, attempt_counts) as r (id, day, attempts)
     where r.day = log_day and d.day = log_day and d.id = any (removed) and d.id = r.id;
  end loop;
  -- The others of a batch. Their ids were made by other processes, whose clocks may be behind.
  if batched is not null then
    update deliveries d
       set state = 'dropped', last_error = reason, next_attempt_at = null, finished_at = clock_timestamp()
     where d.day >= (select min(r.day) - 1 from unnest(days) as r (day)) and d.id = any (batched) and d.state = 'pending';
  end if;
  return removed;
end $$;

-- The group of WABAs whose publishers keep a WABA's order scopes as they are: groups bound how many locks a batch holds.
create or replace function order_scope_group(waba_id text) returns integer language sql immutable
return hashtext(waba_id) & 255;

-- When retries are brought forward of an endpoint that accepted a delivery after it was in trouble: soon, unless it fails
-- again before that, and not more often than a server could bear that comes and goes.
create or replace function backlog_due(retried_at timestamptz) returns timestamptz language sql as $$
  select greatest(clock_timestamp() + interval '2 seconds', retried_at + interval '15 minutes')
$$;

-- Each endpoint has a row of health. What processes of the release before change of it among the settings is carried over.
create or replace function keep_endpoint_health() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into endpoint_health (endpoint_id, mode, mode_reason, mode_changed_at, failing_since, recovered_at,
                                 next_probe_at, probe_failures, failing_notified, has_parked, has_backlog,
                                 backlog_due_at, backlog_retried_at)
    values (new.id, new.mode, new.mode_reason, new.mode_changed_at, new.failing_since, new.recovered_at,
            new.next_probe_at, new.probe_failures, new.failing_notified, new.has_parked, new.has_backlog,
            new.backlog_due_at, new.backlog_retried_at);
  else
    update endpoint_health h
       set mode = case when new.mode is distinct from old.mode then new.mode else h.mode end,
           mode_reason = case when new.mode_reason is distinct from old.mode_reason then new.mode_reason else h.mode_reason end,
           mode_changed_at = case when new.mode_changed_at is distinct from old.mode_changed_at then new.mode_changed_at else h.mode_changed_at end,
           failing_since = case when new.failing_since is distinct from old.failing_since then new.failing_since else h.failing_since end,
           recovered_at = case when new.recovered_at is distinct from old.recovered_at then new.recovered_at else h.recovered_at end,
           next_probe_at = case when new.next_probe_at is distinct from old.next_probe_at then new.next_probe_at else h.next_probe_at end,
           probe_failures = case when new.probe_failures is distinct from old.probe_failures then new.probe_failures else h.probe_failures end,
           failing_notified = case when new.failing_notified is distinct from old.failing_notified then new.failing_notified else h.failing_notified end,
           has_parked = case when new.has_parked is distinct from old.has_parked then new.has_parked else h.has_parked end,
           has_backlog = case when new.has_backlog is distinct from old.has_backlog then new.has_backlog else h.has_backlog end,
           backlog_due_at = case when new.backlog_due_at is distinct from old.backlog_due_at then new.backlog_due_at else h.backlog_due_at end,
           backlog_retried_at = case when new.backlog_retried_at is distinct from old.backlog_retried_at then new.backlog_retried_at else h.backlog_retried_at end
     where h.endpoint_id = new.id;
  end if;
  return null;
end $$;

-- Notes that endpoints accepted a delivery, of those that are in trouble. A row that is locked is passed over: the next success
-- says the same.
create or replace function note_accepted(ids bigint[]) returns void language plpgsql as $$
begin
  update endpoint_health h set backlog_due_at = backlog_due(h.backlog_retried_at)
   where h.endpoint_id = any (array(
     select e.endpoint_id from endpoint_health e
      where e.has_backlog and e.backlog_due_at is null and e.mode <> 'probing' and e.endpoint_id = any (ids)
        for no key update skip locked));
end $$;

-- Deliveries of the queue with what is needed to attempt them, as the calling statement has left them until now.
-- Day by day: a join by a day that is not known before opens the partitions of all days. Event by event: a plan of when the
-- day was empty would read all of it for each.
create or replace function queued_with_events(delivery_ids uuid[]) returns table (
  delivery_id uuid, delivery_day date, endpoint_id bigint, "position" bigint, endpoint_version integer, event_day date,
  event_uuid uuid, attempts integer, probes integer, replay boolean, run text, event_type text, event_id text,
  sequence bigint, body bytea
) language plpgsql volatile as $$
#variable_conflict use_column
declare
  days date[];
  of_day date;
begin
  select array_agg(distinct q.event_day) into days
    from delivery_queue q where q.delivery_id = any (delivery_ids);
  foreach of_day in array coalesce(days, '{}') loop
    return query
      select q.delivery_id, q.delivery_day, q.endpoint_id, q.position, w.version, q.event_day, q.event_uuid,
             q.attempts, q.probes, q.replay, q.run, ev.event_type, ev.event_id, ev.sequence, ev.body
        from delivery_queue q
        join webhook_endpoints w on w.id = q.endpoint_id
        left join lateral (
          select e.event_type, e.event_id, e.sequence, e.body from events e where e.day = of_day and e.id = q.event_uuid limit 1
        ) as ev on true
       where q.delivery_id = any (delivery_ids) and q.event_day = of_day;
  end loop;
end $$;

-- Records attempts and moves their deliveries on, as far as the claim (id, token) is still in force: the lease of the
-- others ended and another process took over. next_state null takes a delivery out of the queue and promotes the next of
-- its lane, in a separate statement: its snapshot must be taken after the head is locked, otherwise it misses rows that
-- were queued behind the head meanwhile. Where `follows` says so, the next one is claimed at once, unless its endpoint
-- takes nothing at present (docs/decisions/0038). Returns a row per delivery that was ours, with how many others became
-- due, and a row per follower, with what is needed to attempt it.
create or replace function settle_and_follow(
  ids uuid[], tokens uuid[], next_states text[], attempt_numbers integer[], probe_counts integer[],
  delays_ms double precision[], runs text[],
  log_days date[], days date[], log_states text[], errors text[], workflow_ids text[],
  waba_ids text[], endpoint_ids bigint[], started timestamptz[], durations_ms double precision[],
  dns_ms real[], connect_ms real[], tls_ms real[], first_byte_ms real[], reused boolean[], status_codes integer[],
  error_classes text[], error_messages text[], urls text[],
  addresses text[], custom_headers text[], response_headers_json text[], response_bodies bytea[],
  worker_name text, run_prefix text, user_agent text, follows boolean[], follow_token uuid, lease_ms double precision
) returns table (
  settled uuid, promoted integer,
  delivery_id uuid, delivery_day date, endpoint_id bigint, endpoint_version integer, event_day date,
  event_uuid uuid, attempts integer, probes integer, replay boolean, event_type text, event_id text,
  sequence bigint, body bytea
) language plpgsql as $$
#variable_conflict use_column
declare
  ours uuid[];
  lane_endpoints bigint[];
  lane_names text[];
  lane_positions bigint[];
  followed_endpoints bigint[];
  followed_lanes text[];
  followed_positions bigint[];
  due_lanes integer := 0;
  followers uuid[];
  log_day date;
begin
  -- So written that no partial index serves for the state: by the statistics of an empty queue all claims would be read.
  select array_agg(locked.delivery_id) into ours from (
    select q.delivery_id from delivery_queue q
      join unnest(ids, tokens) as c (delivery_id, token) on c.delivery_id = q.delivery_id and c.token = q.token
     where q.delivery_id = any (ids) and q.state || '' = 'claimed'
     order by q.endpoint_id, q.lane for update of q skip locked) as locked;
  if ours is null then
    return;
  end if;
  with gone as (
    delete from delivery_queue q
     using unnest(ids, next_states, follows) as r (id, next_state, follow)
     where q.delivery_id = any (ours) and q.delivery_id = r.id and r.next_state is null
    returning q.endpoint_id, q.lane, q.position, r.follow
  ), lanes as (
    select g.endpoint_id, g.lane, g.position,
           g.follow and exists (select from endpoint_health h where h.endpoint_id = g.endpoint_id and h.mode = 'open') as follows
      from gone g
  )
  select array_agg(l.endpoint_id) filter (where not l.follows), array_agg(l.lane) filter (where not l.follows),
         array_agg(l.position) filter (where not l.follows), array_agg(l.endpoint_id) filter (where l.follows),
         array_agg(l.lane) filter (where l.follows), array_agg(l.position) filter (where l.follows)
    into lane_endpoints, lane_names, lane_positions, followed_endpoints, followed_lanes, followed_positions from lanes l;
  if lane_endpoints is not null then
    select count(*) into due_lanes
      from promote_behind(lane_endpoints, lane_names, lane_positions, null, null) p where p.state = 'due';
  end if;
  if followed_endpoints is not null then
    select array_agg(p.delivery_id) into followers
      from promote_behind(followed_endpoints, followed_lanes, followed_positions, follow_token, lease_ms) p
     where p.state = 'claimed';
  end if;
  if coalesce(cardinality(lane_endpoints), 0) + coalesce(cardinality(followed_endpoints), 0) < cardinality(ours) then
    update delivery_queue q
       set state = next_states[n], token = null, lease_until = null, run = coalesce(q.run, runs[n]),
           attempts = attempt_numbers[n], probes = probe_counts[n],
           next_attempt_at = clock_timestamp() + delays_ms[n] * interval '1 millisecond', scheduled_at = null,
           first_failed_at = coalesce(q.first_failed_at, clock_timestamp()),
           blocks = blocks_now(q.endpoint_id, q.lane, q.event_day, q.event_uuid)
      from generate_subscripts(ids, 1) as n
     where q.delivery_id = ids[n] and next_states[n] is not null and q.delivery_id = any (ours);
  end if;
  insert into attempts (delivery_id, attempt, waba_id, endpoint_id, started_at, duration_ms, dns_ms, connect_ms, tls_ms,
                        first_byte_ms, reused, status_code, error_class, error_message, url, remote_address,
                        user_agent, custom_headers, response_headers, response_body, worker)
  select ids[n], attempt_numbers[n], waba_ids[n], endpoint_ids[n], started[n], durations_ms[n], dns_ms[n], connect_ms[n],
         tls_ms[n], first_byte_ms[n], reused[n], status_codes[n], error_classes[n], error_messages[n], urls[n],
         addresses[n], settle_and_follow.user_agent, custom_headers[n], response_headers_json[n]::jsonb,
         response_bodies[n], worker_name
    from generate_subscripts(ids, 1) as n
   where ids[n] = any (ours)
  on conflict do nothing;
  foreach log_day in array log_days loop
    update deliveries d
       set state = log_states[n], attempts = attempt_numbers[n], last_status_code = status_codes[n],
           last_error = errors[n],
           next_attempt_at = clock_timestamp() + delays_ms[n] * interval '1 millisecond',
           finished_at = case when log_states[n] = 'pending' then null else clock_timestamp() end,
           -- The delivery had a run, which shows this attempt too.
           workflow_id = case when starts_with(d.workflow_id, run_prefix) then d.workflow_id
                              else coalesce(workflow_ids[n], d.workflow_id) end
      from generate_subscripts(ids, 1) as n
     where days[n] = log_day and d.day = log_day and d.id = any (ours) and d.id = ids[n];
  end loop;
  if 'delivered' = all (log_states) and exists (
       select from endpoint_health h where h.has_backlog and h.backlog_due_at is null) then
    perform note_accepted(array(
      select p.endpoint_id from unnest(ids, endpoint_ids) as p (id, endpoint_id) where p.id = any (ours)));
  end if;
  -- Nothing was sent, or let go, on the strength of this: a crash of PostgreSQL within the next moment repeats webhooks, with
  -- their ids, once their leases have ended.
  if 'delivered' = all (log_states) and due_lanes = 0 and followers is null then
    perform set_config('synchronous_commit', 'off', true);
  end if;
  return query select s.id, due_lanes, null::uuid, null::date, null::bigint, null::integer, null::date, null::uuid,
                      null::integer, null::integer, null::boolean, null::text, null::text, null::bigint, null::bytea
                 from unnest(ours) as s (id);
  if followers is null then
    return;
  end if;
  return query select null::uuid, 0, c.delivery_id, c.delivery_day, c.endpoint_id, c.endpoint_version, c.event_day, c.event_uuid,
                      c.attempts, c.probes, c.replay, c.event_type, c.event_id, c.sequence, c.body
                 from queued_with_events(followers) c order by c.position;
end $$;

-- What workers do to daily partitions, for roles that own no table: as the owner, and nothing else than this.
create or replace function change_partition(step text, parent text, day date) returns void
  language plpgsql security definer set search_path = public, pg_temp as $$
declare
  name text := parent || to_char(day, '"_"YYYYMMDD');
  constraint_name text := parent || to_char(day, '"_default_without_"YYYYMMDD');
  day_column text := case when parent = 'inbox' then 'received_day'
                          when parent in ('events', 'deliveries', 'attempts') then 'day' end;
  storage text;
begin
  if day_column is null then
    raise exception '% has no daily partitions', parent using errcode = '22023';
  end if;
  case step
    when 'create' then
      select coalesce('with (' || array_to_string(reloptions, ', ') || ')', '') into storage
        from pg_class where oid = cast(parent || '_default' as regclass);
      execute format('create table %I (like %I including all excluding identity excluding indexes) %s', name, parent, storage);
    when 'attach' then
      execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, name, day, day + 1);
    when 'drop' then
      execute format('drop table if exists %I', name);
    when 'keep out' then
      execute format('alter table %I add constraint %I check (%I < %L or %I >= %L) not valid',
        parent || '_default', constraint_name, day_column, day, day_column, day + 1);
    when 'validate' then
      execute format('alter table %I validate constraint %I', parent || '_default', constraint_name);
    when 'let in' then
      execute format('alter table %I drop constraint if exists %I', parent || '_default', constraint_name);
  end case;
end $$;
revoke execute on function change_partition(text, text, date) from public;

-- Drops the partition of a day as the owner of the tables, except the rows that are still needed, which move to the default
-- partition: events and deliveries with these ids, bodies that are not ingested. False, and nothing happens, when those are
-- more than `most`: others wait for the table meanwhile.
create or replace function drop_partition_except(parent text, day date, needed_ids uuid[], most integer) returns boolean
  language plpgsql security definer set search_path = public, pg_temp as $$
declare
  name text := parent || to_char(day, '"_"YYYYMMDD');
  is_needed text := case when parent = 'inbox' then $q$state in ('new', 'failed', 'waiting')$q$
                         when parent in ('events', 'deliveries') then 'id = any ($1)'
                         when parent = 'attempts' then 'false' end;
  found bigint;
begin
  if is_needed is null then
    raise exception '% has no daily partitions', parent using errcode = '22023';
  end if;
  if to_regclass(name) is null then
    return true;
  end if;
  execute format('select count(*) from %I where %s', name, is_needed) into found using needed_ids;
  if found > most then
    return false;
  end if;
  if found > 0 then
    execute format('alter table %I detach partition %I', parent, name);
    execute format('insert into %I overriding system value select * from %I where %s', parent || '_default', name, is_needed)
      using needed_ids;
  end if;
  execute format('drop table %I', name);
  return true;
end $$;
revoke execute on function drop_partition_except(text, date, uuid[], integer) from public;
