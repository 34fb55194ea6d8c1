-- The inputs that could not be read, and why
select build, path, status, error from modules where status <> 'ok' order by build, path
