-- Arrays that waste most memory on padding
-- $build = : the build (default: the newest)
-- $rows = 20: number of rows
select
    m.name as module, i.name as instruction, i.shape, i.bytes, i.padded_bytes, i.padded_bytes - i.bytes as lost
from instructions i
join modules m using (module)
where m.build = coalesce($build, newest()) and i.padded_bytes > i.bytes and i.written_bytes > 0
order by lost desc, module, instruction
limit cast($rows as int)
