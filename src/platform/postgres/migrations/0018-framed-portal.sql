-- The origin of the product whose page shows the portal of a link in a frame.

alter table portal_links add embed_origin text;
