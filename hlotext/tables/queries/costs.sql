-- FLOPs, bytes and minimum time of each operation in one run, with its Python line
-- $build = : the build (default: the newest)
-- $rows = 1000000: number of rows
select
    split_part(o.module, '@', 1) as module,
    o.name,
    o.opcode,
    o.computation,
    o.runs,
    o.flops,
    o.transcendentals,
    o.bytes_accessed,
    o.seconds,
    o.chip,
    o.scope,
    o.file,
    o.line
from operations o
join modules m using (module)
where m.build = coalesce($build, newest())
order by o.seconds desc nulls last, o.flops desc, o.bytes_accessed desc, o.name
limit cast($rows as bigint)
