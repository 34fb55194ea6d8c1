-- Bytes that each opcode writes, over all modules of a build
-- $build = : the build (default: the newest)
select
    i.opcode,
    count(*) as instructions,
    sum(i.written_bytes) as written_once,
    sum(i.written_bytes * coalesce(i.runs, 1)) as written
from instructions i
join modules m using (module)
where m.build = coalesce($build, newest())
group by i.opcode
order by written desc, i.opcode
