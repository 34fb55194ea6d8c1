-- The operations of profiler traces that took longest, each beside its least time where the chip is known
-- $rows = 20: how many operations
with slowest as (
    select module, id, name, any_value(runs) as runs, max(seconds) as seconds, sum(kernels) as kernels, sum(launch_seconds) as launch_seconds
    from measured
    group by all
),
least as (select module, id, sum(seconds) as seconds from times group by all)
select
    m.name as module,
    s.name as operation,
    i.opcode,
    s.kernels,
    s.seconds / coalesce(s.runs, 1) as measured_seconds,
    case when s.runs is not null then l.seconds end as least_seconds,
    s.launch_seconds,
    i.file,
    i.line
from slowest s
join modules m using (module)
left join instructions i on i.module = s.module and i.id = s.id
left join least l on l.module = s.module and l.id = s.id
order by s.seconds desc, m.name, s.name
limit $rows::bigint
