-- Modules that gained instances of an opcode, and since which build
-- $opcode = all-gather: the opcode, or the wrapped one of an asynchronous operation; all-gather includes all-gather-start
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
