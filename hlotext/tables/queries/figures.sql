-- Cost of each build of each module: memory, operations, bytes sent, minimum time, instructions, lint warnings
with cost as (select module, sum(flops) as flops from costs group by module),
sent as (
    select module, sum(coalesce(wire_bytes, 0) * coalesce(runs, 1)) as wire_bytes from collectives group by module
),
found as (select module, count(*) as findings from findings where severity <> 'note' group by module)
select
    p.program as module, p.build, m.path, m.peak_bytes, if(is_built('costs'), coalesce(c.flops, 0), c.flops) as flops,
    if(is_built('collectives'), coalesce(s.wire_bytes, 0), s.wire_bytes) as wire_bytes,
    m.least_seconds, m.instructions, if(is_built('findings'), coalesce(f.findings, 0), f.findings) as findings
from programs p
join modules m using (module)
left join cost c using (module)
left join sent s using (module)
left join found f using (module)
order by p.program, p.build
