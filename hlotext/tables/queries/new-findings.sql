-- What the linter finds in a build, and did not find in an earlier one
-- $build = : the build; the newest without it
-- $old = : the earlier one; the one right before it without it
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
