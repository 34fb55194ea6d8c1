-- What the linter finds in a build, and did not find in an earlier one
-- $build = : the build; the newest without it
-- $old = : the earlier one; the one right before it without it
with pairs as (select * from compared($build, $old)),
before as (
    select f.fingerprint as key from findings f join modules m using (module) join pairs on pairs.name = m.name
    where m.build = pairs.old
    union
    select unnest(f.other_fingerprints) as key from findings f join modules m using (module) join pairs on pairs.name = m.name
    where m.build = pairs.old
)
select m.name as module, f.code, f.name as instruction, f.message, f.file, f.line
from findings f
join modules m using (module)
join pairs on pairs.name = m.name
where m.build = pairs.new and f.fingerprint not in (select key from before)
order by f.code, m.name, f.id
