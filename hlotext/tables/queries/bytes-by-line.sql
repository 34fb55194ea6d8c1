-- Bytes that each Python line writes, over all modules of a build
-- $build = : the build (default: the newest)
select
    i.file,
    i.line,
    any_value(i.function) as function,
    count(*) as instructions,
    sum(i.written_bytes * coalesce(i.runs, 1)) as written
from instructions i
join modules m using (module)
where m.build = coalesce($build, newest()) and i.file is not null
group by i.file, i.line
order by written desc, i.file, i.line
