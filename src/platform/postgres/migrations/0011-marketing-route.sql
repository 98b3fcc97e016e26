-- Which call of upstream the marketing templates of a number go to.

alter table phone_numbers add marketing_route text not null default 'auto'
                check (marketing_route in ('auto', 'always', 'never'));
