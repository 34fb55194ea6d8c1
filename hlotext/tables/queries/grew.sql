-- Modules that write more or fewer bytes than in an earlier build
-- $build = : the build (default: the newest)
-- $old = : the earlier build (default: the previous one)
with sums as (
    select m.program, m.build, count(*) as instructions, sum(i.written_bytes * coalesce(i.runs, 1)) as written
    from instructions i
    join programs m using (module)
    group by m.program, m.build
),
pairs as (select * from compared($build, $old)),
new as (select sums.* from sums join pairs using (program) where sums.build = pairs.new),
old as (select sums.* from sums join pairs using (program) where sums.build = pairs.old)
select
    new.program as module,
    old.instructions as instructions_before,
    new.instructions,
    old.written as written_before,
    new.written,
    new.written - old.written as more,
    round(100.0 * (new.written - old.written) / nullif(old.written, 0), 1) as percent
from new
join old using (program)
where new.written <> old.written or new.instructions <> old.instructions
order by abs(more) desc, module
