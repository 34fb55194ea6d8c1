-- Which builds cost more than the one before, in which figure, and which operation brought most of it
-- $build = : only this build
-- $percent = 0: only what grew by more than this
-- $rows = 1: how many operations of each build and module
with long as (
    unpivot (
        select p.program as module, p.build, m.peak_bytes::double as peak_bytes, m.least_seconds::double as least_seconds,
            m.instructions::double as instructions, coalesce(c.flops, 0)::double as flops,
            coalesce(s.wire_bytes, 0)::double as wire_bytes, coalesce(f.findings, 0)::double as findings
        from programs p
        join modules m using (module)
        left join (select module, sum(flops) as flops from costs group by module) c using (module)
        left join (
            select module, sum(coalesce(wire_bytes, 0) * coalesce(runs, 1)) as wire_bytes from collectives group by module
        ) s using (module)
        left join (select module, count(*) as findings from findings where severity <> 'note' group by module) f using (module)
    ) on peak_bytes, least_seconds, flops, wire_bytes, instructions, findings into name figure value value
),
steps as (
    select *, lag(value) over history as before, lag(build) over history as before_build
    from long
    window history as (partition by module, figure order by build)
),
grown as (
    select * from steps where value > before * (1 + cast($percent as double) / 100) and ($build is null or build = $build)
),
weights as (
    select i.module, i.id, coalesce(i.written_bytes * coalesce(i.runs, 1), 0) as written, coalesce(c.flops, 0) as flops
    from instructions i left join (select module, id, sum(flops) as flops from costs group by all) c using (module, id)
    where i.written_bytes > 0 or c.flops > 0
),
sums as (
    select m.program as module, m.build, i.label, i.scope, count(*) filter (w.written > 0) as number, sum(w.written) as written,
        sum(w.flops) as flops
    from weights w join instructions i using (module, id) join programs m using (module)
    group by all
),
rose as (
    select g.module, g.build, g.before_build, n.label, n.scope, n.number, n.written - coalesce(o.written, 0) as more_bytes,
        n.flops - coalesce(o.flops, 0) as more_flops,
        n.label like 'all-%' or n.label like '%-to-all%' or n.label like 'reduce-scatter%' or n.label like 'collective-%' as is_sent
    from (select distinct module, build, before_build from grown) g
    join sums n on n.module = g.module and n.build = g.build
    left join sums o on o.module = g.module and o.build = g.before_build and o.label = n.label and o.scope = n.scope
    where n.written > coalesce(o.written, 0) or n.flops > coalesce(o.flops, 0)
),
members as (
    select m.program as module, m.build, i.label, i.scope, i.id, i.name as operation, i.shape, i.file, i.line, w.written, w.flops,
        exists (
            select 1 from instructions p join programs b using (module)
            where b.program = m.program and b.build = r.before_build and p.label = i.label and p.scope = i.scope and p.shape = i.shape
        ) as is_old
    from weights w
    join instructions i using (module, id)
    join programs m using (module)
    join rose r on r.module = m.program and r.build = m.build and r.label = i.label and r.scope = i.scope
),
shown as (
    select *, row_number() over (alike order by is_old, written desc, id) as by_bytes,
        row_number() over (alike order by is_old, flops desc, id) as by_flops
    from members
    window alike as (partition by module, build, label, scope)
),
ranked as (
    select g.module, g.build, g.figure, s.operation, s.label, s.shape, r.more_bytes, r.more_flops, r.number, s.file, s.line,
        row_number() over (
            partition by g.module, g.build, g.figure
            order by g.figure = 'wire_bytes' and not r.is_sent, case g.figure when 'flops' then r.more_flops else r.more_bytes end
                desc, s.operation
        ) as place
    from grown g
    join rose r on r.module = g.module and r.build = g.build
        and case g.figure when 'flops' then r.more_flops else r.more_bytes end > 0
    join shown s on s.module = g.module and s.build = g.build and s.label = r.label and s.scope = r.scope
        and case g.figure when 'flops' then s.by_flops else s.by_bytes end = 1
)
select
    g.module, g.build, g.before_build, g.figure, g.before, g.value,
    round(100 * (g.value - g.before) / nullif(g.before, 0), 4) as percent,
    r.operation, r.label, r.shape, r.more_bytes, r.more_flops, r.number as alike, r.file, r.line
from grown g
left join ranked r on r.module = g.module and r.build = g.build and r.figure = g.figure and r.place <= cast($rows as int)
order by g.build, g.module, g.figure, r.place
