-- Modules added or removed since an earlier build
-- $build = : the build (default: the newest)
-- $old = : the earlier build (default: the previous one)
with pairs as (select * from compared($build, $old)),
new as (select distinct program from programs join pairs using (program) where status = 'ok' and build = pairs.new),
old as (select distinct program from programs join pairs using (program) where status = 'ok' and build = pairs.old)
select 'appeared' as change, program as module from new where program not in (select program from old)
union all
select 'gone' as change, program as module from old where program not in (select program from new)
order by change, module
