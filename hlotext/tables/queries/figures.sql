-- What each build of each module costs: memory, operations, bytes sent, least time, instructions, warnings of the linter
with parts as (
    select m.name, m.build, any_value(m.path) as path, sum(m.instructions) as instructions, max(m.peak_bytes) as peak_bytes,
        sum(m.least_seconds) as least_seconds, list(m.module) as keys
    from modules m
    where m.status = 'ok'
    group by m.name, m.build
),
cost as (select m.name, m.build, sum(c.flops) as flops from costs c join modules m using (module) group by all),
sent as (
    select m.name, m.build, sum(coalesce(c.wire_bytes, 0) * coalesce(c.runs, 1)) as wire_bytes
    from collectives c join modules m using (module) group by all
),
found as (
    select m.name, m.build, count(*) as findings
    from findings f join modules m using (module)
    where f.severity <> 'note' group by all
)
select
    p.name as module, p.build, p.path, p.peak_bytes, coalesce(c.flops, 0) as flops, coalesce(s.wire_bytes, 0) as wire_bytes,
    p.least_seconds, p.instructions, coalesce(f.findings, 0) as findings
from parts p
left join cost c using (name, build)
left join sent s using (name, build)
left join found f using (name, build)
order by module, p.build
