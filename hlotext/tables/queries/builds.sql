-- The builds: their modules, instructions and bytes written
select
    m.build,
    count(distinct m.path) as inputs,
    count(distinct m.path) filter (m.status <> 'ok') as unreadable,
    sum(m.instructions) as instructions,
    sum(w.written) as written
from modules m
left join (
    select module, sum(written_bytes * coalesce(runs, 1)) as written from instructions group by module
) w using (module)
group by m.build
order by m.build
