-- Bytes that each scope writes, over all modules of a build
-- $build = : the build (default: the newest)
select
    i.scope,
    count(*) as instructions,
    sum(i.written_bytes * coalesce(i.runs, 1)) as written
from instructions i
join modules m using (module)
where m.build = coalesce($build, newest())
group by i.scope
order by written desc, i.scope
