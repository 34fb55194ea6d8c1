-- Longest operations in profiler traces, with their minimum time if the chip is known
-- $rows = 20: number of operations
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
    s.runs,
    s.seconds as all_runs_seconds,
    s.seconds / s.runs as run_seconds,
    l.seconds as run_least_seconds,
    s.launch_seconds,
    i.file,
    i.line
from slowest s
join modules m using (module)
left join instructions i on i.module = s.module and i.id = s.id
left join least l on l.module = s.module and l.id = s.id
order by s.seconds desc, m.name, s.name
limit $rows::bigint
