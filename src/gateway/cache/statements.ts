/** What the cache of jobs asks of its file. */

export const TABLE = `
  pragma journal_mode = wal;
  pragma synchronous = off;
  pragma busy_timeout = 200;
  create table if not exists jobs (
    tenant text not null,
    id text not null,
    status text not null,
    priority text not null,
    name text not null,
    owner text not null,
    parent text,
    model text,
    data text,
    training text,
    resources text,
    checkpoint text,
    error text,
    createdAtMs integer not null,
    startedAtMs integer,
    endedAtMs integer,
    seenAtMs integer not null,
    view text not null,
    primary key (tenant, id)
  ) without rowid;
  create index if not exists jobsByAge on jobs (tenant, createdAtMs desc, id desc);
  create index if not exists jobsBySight on jobs (seenAtMs);`;

/** Lists come without what was asked for; what is known of it stays. */
export const UPSERT = `
  insert into jobs (tenant, id, status, priority, name, owner, parent, model, data, training,
    resources, checkpoint, error, createdAtMs, startedAtMs, endedAtMs, seenAtMs, view)
  values (:tenant, :id, :status, :priority, :name, :owner, :parent, :model, :data, :training,
    :resources, :checkpoint, :error, :createdAtMs, :startedAtMs, :endedAtMs, :seenAtMs, :view)
  on conflict (tenant, id) do update set
    status = :status, priority = :priority, name = :name, owner = :owner, parent = :parent,
    model = coalesce(:model, model), data = coalesce(:data, data),
    training = coalesce(:training, training), resources = coalesce(:resources, resources),
    checkpoint = coalesce(:checkpoint, checkpoint), error = :error,
    startedAtMs = :startedAtMs, endedAtMs = :endedAtMs, seenAtMs = :seenAtMs, view = :view`;

export const FORGET = `delete from jobs where tenant = :tenant and id = :id`;

export const ONE = `
  select view, seenAtMs, model, data, training, resources, checkpoint
  from jobs where tenant = :tenant and id = :id`;

export const KNOWN = `select 1 from jobs where tenant = :tenant limit 1`;

export const LIST = `
  select view, seenAtMs from jobs
  where tenant = :tenant
    and (:state is null or status = :state)
    and (:name is null or name = :name)
    and (:owner is null or owner = :owner)
    and (:parent is null or parent = :parent)
    and (createdAtMs, id) < (:beforeMs, :beforeId)
  order by createdAtMs desc, id desc
  limit :limit`;

/** All but the so many that were seen last. */
export const PRUNE = `
  delete from jobs where seenAtMs < (
    select seenAtMs from jobs order by seenAtMs desc limit 1 offset :rows - 1)`;
