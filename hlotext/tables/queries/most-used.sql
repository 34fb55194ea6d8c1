-- Instructions with the most users
-- $build = : the build (default: the newest)
-- $rows = 20: number of rows
select m.name as module, i.name as instruction, i.opcode, i.shape, count(*) as users
from operands o
join instructions i on i.module = o.module and i.id = o.operand
join modules m on m.module = o.module
where m.build = coalesce($build, newest())
group by m.name, m.module, i.id, i.name, i.opcode, i.shape
order by users desc, module, instruction
limit cast($rows as int)
