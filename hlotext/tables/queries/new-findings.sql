-- Lint findings in a build that an earlier one did not have
-- $build = : the build (default: the newest)
-- $old = : the earlier build (default: the previous one)
with pairs as (select * from compared($build, $old)),
before as (
    select f.fingerprint as key from findings f join programs m using (module) join pairs on pairs.program = m.program
    where m.build = pairs.old
    union
    select unnest(f.other_fingerprints) as key from findings f join programs m using (module) join pairs on pairs.program = m.program
    where m.build = pairs.old
)
select m.program as module, f.code, f.name as instruction, f.message, f.file, f.line
from findings f
join programs m using (module)
join pairs on pairs.program = m.program
where m.build = pairs.new and f.fingerprint not in (select key from before)
order by f.code, m.program, f.id
