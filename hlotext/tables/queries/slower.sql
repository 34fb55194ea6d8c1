-- Builds that cost more than the previous one, by figure, with the main responsible operation
-- $build = : only this build
-- $percent = 0: only growth above this percentage
-- $rows = 1: how many operations of each build, module and figure; new collectives stand below them
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
-- What the core waits for a transfer beyond the transfer's own time is queued: it waits for those before it on the link. They
-- are charged with it, as far as the core does not wait for them already.
waits as (
    select module, id, sum(if("on" = 'core', seconds, least(seconds, exposed_seconds))) as seconds,
        sum(if("on" = 'core', 0, greatest(seconds - exposed_seconds, 0))) as hidden,
        sum(if("on" = 'core', 0, greatest(exposed_seconds - seconds, 0))) as queued
    from times group by all
),
-- Operations of one label and scope are one row. What has only moved, to another scope or kind of fusion, is neither new nor
-- more: gains and losses of one opcode and shape (without its layout) cancel out, those of one outermost scope first.
weights as (
    select m.program as module, m.build, i.id, i.name as operation, i.shape, i.file, i.line, i.scope,
        coalesce(s.kind, i.label) as label, coalesce(s.kind, i.opcode) as opcode,
        regexp_replace(i.shape, '\{[^}]*\}|/\*[^*]*\*/', '', 'g') as bare, s.kind is not null as is_sent,
        if(i.opcode like '%-done', 0.0, 1.0) as number, coalesce(c.written, 0)::double as bytes, coalesce(b.held, 0)::double as held,
        coalesce(c.flops, 0)::double as flops, coalesce(t.seconds, 0)::double as seconds, coalesce(t.hidden, 0)::double as hidden,
        coalesce(s.wire, 0)::double as wire
    from instructions i
    join programs m using (module)
    left join (select module, id, sum(flops) as flops, sum(bytes_written) as written from costs group by all) c using (module, id)
    left join (select module, id, sum(peak_bytes) as held from buffers group by all) b using (module, id)
    left join waits t using (module, id)
    left join (
        select module, id, any_value(kind) as kind, sum(coalesce(wire_bytes, 0) * coalesce(runs, 1)) as wire
        from collectives group by all
    ) s using (module, id)
    where c.written > 0 or b.held > 0 or c.flops > 0 or t.seconds > 0 or s.kind is not null
),
measured as (unpivot weights on number, bytes, held, flops, seconds, hidden, wire into name measure value amount),
sums as (select module, build, label, scope, opcode, bare, is_sent, measure, sum(amount) as amount from measured group by all),
sides as (
    select distinct module, build as new, build as build, 1 as sign from grown
    union all
    select distinct module, build, before_build, -1 from grown
),
changes as (
    select d.module, d.new as build, s.label, s.scope, s.opcode, s.bare, s.is_sent, s.measure, sum(d.sign * s.amount) as more
    from sides d join sums s on s.module = d.module and s.build = d.build
    group by all
),
near as (
    select *, min(more) over same < 0 and max(more) over same > 0 as is_near
    from changes
    window same as (partition by module, build, opcode, bare, measure, split_part(scope, '/', 1))
),
running as (
    select *, sum(greatest(more, 0)) over up_to as up, sum(greatest(-more, 0)) over up_to as down,
        sum(greatest(more, 0)) over alike as all_up, sum(greatest(-more, 0)) over alike as all_down
    from near
    window alike as (partition by module, build, opcode, bare, measure),
        up_to as (partition by module, build, opcode, bare, measure order by not is_near, scope, label rows unbounded preceding)
),
net as (
    select module, build, label, scope, opcode, bare, is_sent, measure,
        greatest(0, least(more, up - all_down)) - greatest(0, least(-more, down - all_up)) as more
    from running
),
queues as (
    select d.module, d.new as build, greatest(sum(d.sign * w.queued), 0) as queued
    from sides d
    join programs p on p.program = d.module and p.build = d.build
    join waits w on w.module = p.module
    group by all
),
sums_of_kinds as (
    select module, build, label, scope, bool_or(is_sent) as is_sent, coalesce(sum(more) filter (measure = 'number'), 0) as number,
        coalesce(sum(more) filter (measure = 'bytes'), 0) as bytes, coalesce(sum(more) filter (measure = 'flops'), 0) as flops,
        coalesce(sum(more) filter (measure = 'seconds'), 0) as waited,
        greatest(coalesce(sum(more) filter (measure = 'hidden'), 0), 0) as hidden,
        coalesce(sum(more) filter (measure = 'wire'), 0) as wire, coalesce(sum(more) filter (measure = 'held'), 0) as held
    from net group by all
),
totals as (
    select k.*, round(
        waited + coalesce(hidden * least(1, q.queued / nullif(sum(hidden) over (partition by module, build), 0)), 0), 12
    ) as seconds
    from sums_of_kinds k left join queues q using (module, build)
),
rose as (
    select *, is_sent and number > 0 and sum(number) over (partition by module, build, label) > 0 as is_new_collective
    from totals
    qualify is_new_collective or greatest(bytes, held, flops, seconds, wire) > 0
),
counted as (select *, count(*) over (partition by module, build) as grew from rose),
members as (
    select m.*, n.measure, n.more, count(*) filter (m.bytes > 0) over alike as alike
    from weights m
    join net n using (module, build, label, scope, opcode, bare)
    window alike as (partition by m.module, m.build, m.label, m.scope, n.measure)
),
shown as (
    select * from members
    qualify row_number() over (
        partition by module, build, label, scope, measure
        order by more <= 0, case measure when 'flops' then flops when 'seconds' then seconds + hidden when 'wire' then wire
            when 'held' then held else bytes end desc, id
    ) = 1
),
figures as (
    select *, case figure when 'flops' then 'flops' when 'least_seconds' then 'seconds' when 'wire_bytes' then 'wire'
        when 'peak_bytes' then 'held'
        when 'instructions' then 'number' else 'bytes' end as measure
    from grown
),
ranked as (
    select f.module, f.build, f.figure, s.operation, c.label, c.scope, s.shape, c.bytes, c.held, c.flops, c.seconds, c.wire, s.alike, c.is_new_collective,
        c.grew, s.file, s.line,
        case f.measure when 'flops' then c.flops when 'seconds' then c.seconds when 'wire' then c.wire when 'number' then c.number
            when 'held' then c.held else c.bytes end as gain,
        row_number() over (partition by f.module, f.build, f.figure order by gain desc, c.bytes desc, s.operation) as place
    from figures f
    join counted c using (module, build)
    join shown s using (module, build, label, scope, measure)
)
select
    g.module, g.build, g.before_build, g.figure, g.before, g.value,
    round(100 * (g.value - g.before) / nullif(g.before, 0), 4) as percent,
    r.operation, r.label, r.scope, r.shape, r.bytes::bigint as more_bytes, r.held::bigint as more_held, r.flops as more_flops, r.seconds as more_seconds, r.wire::bigint as more_sent, r.alike,
    r.is_new_collective, r.grew, r.file, r.line
from grown g
left join ranked r on r.module = g.module and r.build = g.build and r.figure = g.figure
    and (r.is_new_collective or (r.gain > 0 and r.place <= cast($rows as int)))
order by g.build, g.module, g.figure, r.gain <= 0, r.place
