-- Which modules got more of an opcode, and since which build
-- $opcode = all-gather: which opcode, or what it runs for an asynchronous one; all-gather stands for all-gather-start too
with counts as (
    select
        m.program,
        m.build,
        count(i.id) filter (i.opcode in ($opcode, $opcode || '-start') or i.label = $opcode) as found
    from programs m
    left join instructions i using (module)
    where m.status = 'ok'
    group by m.program, m.build
),
steps as (
    select *, lag(found) over history as before, lag(build) over history as before_build
    from counts
    window history as (partition by program order by build)
)
select program as module, build as since, before_build, before, found as now
from steps
where found > before
order by since, module
