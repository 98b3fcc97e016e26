-- The WABAs that the session of a portal link sees; null: all of its tenant. An earlier release beside this one refuses
-- to make such a link, and shows the whole tenant to who has one.

alter table portal_links add waba_ids text[];
