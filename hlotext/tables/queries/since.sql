-- Which modules got more of an opcode, and since which build
-- $opcode = all-gather: which opcode, or what it runs for an asynchronous one; all-gather stands for all-gather-start too
with counts as (
    select
        m.name,
        m.build,
        count(i.id) filter (i.opcode in ($opcode, $opcode || '-start') or i.label = $opcode) as found
    from modules m
    left join instructions i using (module)
    where m.status = 'ok'
    group by m.name, m.build
),
steps as (
    select *, lag(found) over history as before, lag(build) over history as before_build
    from counts
    window history as (partition by name order by build)
)
select name as module, build as since, before_build, before, found as now
from steps
where found > before
order by since, module
