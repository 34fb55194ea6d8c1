-- Modules that a build has and an earlier one had not, and the other way round
-- $build = : the build; the newest without it
-- $old = : the earlier one; the one right before it without it
with pairs as (select * from compared($build, $old)),
new as (select distinct program from programs join pairs using (program) where status = 'ok' and build = pairs.new),
old as (select distinct program from programs join pairs using (program) where status = 'ok' and build = pairs.old)
select 'appeared' as change, program as module from new where program not in (select program from old)
union all
select 'gone' as change, program as module from old where program not in (select program from new)
order by change, module
