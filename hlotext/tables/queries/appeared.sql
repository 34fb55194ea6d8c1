-- Operations that are new in a build, or more frequent than in an earlier one
-- $build = : the build (default: the newest)
-- $old = : the earlier build (default: the previous one)
-- $opcode = : only this opcode
with counts as (
    select
        m.program,
        i.label,
        i.shape,
        i.scope,
        count(*) filter (m.build = p.new) as now,
        count(*) filter (m.build = p.old) as before,
        sum(i.written_bytes * coalesce(i.runs, 1)) filter (m.build = p.new) as written,
        sum(i.written_bytes * coalesce(i.runs, 1)) filter (m.build = p.old) as written_before
    from instructions i
    join programs m using (module)
    join compared($build, $old) p on p.program = m.program
    where $opcode is null or i.opcode in ($opcode, $opcode || '-start') or i.label = $opcode
    group by m.program, i.label, i.shape, i.scope
)
select
    program as module, label as operation, shape, scope, before, now,
    coalesce(written, 0) - coalesce(written_before, 0) as more_bytes
from counts
where now > before
order by abs(more_bytes) desc, module, operation, shape, scope
