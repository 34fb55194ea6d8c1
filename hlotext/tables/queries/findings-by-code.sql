-- Lint findings, by code
-- $build = : the build (default: the newest)
select f.code, f.rule, f.severity, count(*) as findings, count(distinct m.path) as modules, sum(f.bytes) as bytes
from findings f
join modules m using (module)
where m.build = coalesce($build, newest())
group by f.code, f.rule, f.severity
order by findings desc, f.code
