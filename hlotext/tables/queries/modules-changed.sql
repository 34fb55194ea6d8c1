-- Modules that a build has and an earlier one had not, and the other way round
-- $build = : the build; the newest without it
-- $old = : the earlier one; the one right before it without it
with pairs as (select * from compared($build, $old)),
new as (select distinct name from modules join pairs using (name) where status = 'ok' and build = pairs.new),
old as (select distinct name from modules join pairs using (name) where status = 'ok' and build = pairs.old)
select 'appeared' as change, name as module from new where name not in (select name from old)
union all
select 'gone' as change, name as module from old where name not in (select name from new)
order by change, module
