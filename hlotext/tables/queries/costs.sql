-- FLOPs, bytes and minimum time of each operation in one run, with its Python line
-- $build = : the build (default: the newest)
-- $rows = 1000000: number of rows
with recursive known as (
    select c.module, c.id, c.home, i.computation, c.flops, c.transcendentals, c.bytes_accessed
    from costs c
    join instructions i using (module, id)
    join modules m using (module)
    where m.build = coalesce($build, newest())
), bodies as (
    select distinct module, home, computation from known where computation <> home
), callers as (
    select module, computation as "at", id, unnest(calls) as body from instructions
), owners as (
    -- What is in a fusion belongs to the fusion; of several that run one body each has the same.
    select b.module, b.home, k.id as owner, k.body
    from callers k join bodies b on b.module = k.module and b.home = k."at" and b.computation = k.body
    union all
    select o.module, o.home, o.owner, k.body
    from owners o join callers k on k.module = o.module and k."at" = o.body
    join bodies b on b.module = k.module and b.home = o.home and b.computation = k.body
), counted as (
    select module, home, body as computation, list(owner) as owners from owners group by all
), owned as (
    select
        k.module,
        unnest(coalesce(c.owners, [k.id])) as id,
        k.flops / coalesce(len(c.owners), 1) as flops,
        k.transcendentals / coalesce(len(c.owners), 1) as transcendentals,
        k.bytes_accessed / coalesce(len(c.owners), 1) as bytes_accessed
    from known k
    left join counted c using (module, home, computation)
), summed as (
    select
        module, id, sum(flops) as flops, sum(transcendentals) as transcendentals, sum(bytes_accessed) as bytes_accessed
    from owned
    group by module, id
), timed as (
    select module, id, any_value(chip) as chip, sum(seconds) as seconds -- of what runs on the core and on links
    from times
    group by module, id
)
select
    split_part(s.module, '@', 1) as module,
    i.name,
    i.opcode,
    i.computation,
    i.runs,
    s.flops,
    s.transcendentals,
    s.bytes_accessed,
    t.seconds,
    t.chip,
    i.scope,
    i.file,
    i.line
from summed s
join instructions i using (module, id)
left join timed t using (module, id)
order by t.seconds desc nulls last, s.flops desc, s.bytes_accessed desc, i.name
limit cast($rows as bigint)
