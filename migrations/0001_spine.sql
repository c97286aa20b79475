-- The spine: one controller row, jobs, tasks, attempts, claims, workers, tokens, events.
-- Runs on SQLite and PostgreSQL alike. A part between /*sqlite and */ is for SQLite only.

CREATE TABLE controller (
  id integer PRIMARY KEY,
  cluster_id text NOT NULL,
  epoch bigint NOT NULL,
  batch bigint NOT NULL,
  seq bigint NOT NULL
);

-- Every question about jobs names a tenant, so the key begins with it and no other index is needed.
CREATE TABLE jobs (
  tenant text NOT NULL,
  id text NOT NULL,
  cluster text NOT NULL,
  owner text NOT NULL,
  submitting_principal text NOT NULL,
  kind text NOT NULL,
  name text NOT NULL,
  spec text NOT NULL,
  task_count bigint NOT NULL,
  created_at_ms bigint NOT NULL,
  round bigint NOT NULL DEFAULT 0,
  cancel_requested_at_ms bigint,
  cancelled_by text,
  ended_at_ms bigint,
  spent_micros bigint NOT NULL DEFAULT 0,
  version bigint NOT NULL DEFAULT 1,
  end_state text,
  end_reason text,
  exit_code bigint,
  started_at_ms bigint,
  succeeded bigint,
  failed bigint,
  cancelled bigint,
  unschedulable bigint,
  parent text,
  root text,
  priority text,
  PRIMARY KEY (tenant, id)
) /*sqlite WITHOUT ROWID */;

CREATE INDEX jobs_live ON jobs (id) WHERE ended_at_ms IS NULL;
CREATE INDEX jobs_troubled ON jobs (tenant, end_state, id)
  WHERE end_state IN ('FAILED', 'CANCELLED', 'UNSCHEDULABLE');

CREATE INDEX jobs_children ON jobs (tenant, parent, id) WHERE parent IS NOT NULL;

-- One row for each submission that had an idempotency key, in order of time: keys are known for a day.
CREATE TABLE submissions (
  created_at_ms bigint NOT NULL,
  first_job text NOT NULL,
  tenant text NOT NULL,
  idempotency_key text NOT NULL,
  body_hash text NOT NULL,
  jobs text NOT NULL,
  PRIMARY KEY (created_at_ms, first_job)
) /*sqlite WITHOUT ROWID */;

-- A task of which nothing is known but its job's spec has no row yet.
CREATE TABLE tasks (
  job text NOT NULL,
  task_index bigint NOT NULL,
  cluster text NOT NULL,
  tenant text NOT NULL,
  created_at_ms bigint NOT NULL,
  state text NOT NULL,
  attempts bigint NOT NULL,
  failures bigint NOT NULL,
  interruptions bigint NOT NULL,
  round_done bigint NOT NULL,
  reason text NOT NULL,
  exit_code bigint,
  not_before_ms bigint NOT NULL,
  started_at_ms bigint,
  ended_at_ms bigint,
  version bigint NOT NULL,
  PRIMARY KEY (job, task_index)
) /*sqlite WITHOUT ROWID */;

-- Tasks this cluster runs itself; a job handed to a peer keeps its rows, but not its work.
CREATE VIEW local_tasks AS SELECT * FROM tasks WHERE cluster = 'local';

CREATE TABLE attempts (
  job text NOT NULL,
  task_index bigint NOT NULL,
  n bigint NOT NULL,
  uid text NOT NULL,
  tenant text NOT NULL,
  round bigint NOT NULL,
  worker text NOT NULL,
  assigned_at_ms bigint NOT NULL,
  price_micros bigint NOT NULL,
  state text NOT NULL DEFAULT 'ASSIGNED',
  stop_cause text,
  cause text,
  exit_code bigint,
  signal text,
  message text NOT NULL DEFAULT '',
  started_at_ms bigint,
  ended_at_ms bigint,
  stdout_bytes bigint,
  stderr_bytes bigint,
  charges bigint NOT NULL DEFAULT 0,
  charged_micros bigint NOT NULL DEFAULT 0,
  charged_device_ms bigint NOT NULL DEFAULT 0,
  facts text NOT NULL DEFAULT '{}',
  result text,
  result_bytes bigint,
  version bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (job, task_index, n)
) /*sqlite WITHOUT ROWID */;

CREATE TABLE claims (
  owner text PRIMARY KEY,
  worker text NOT NULL,
  cpu_millis bigint NOT NULL,
  memory_bytes bigint NOT NULL,
  devices text NOT NULL,
  share bigint NOT NULL,
  ports text NOT NULL,
  state text NOT NULL
) /*sqlite WITHOUT ROWID */;

CREATE TABLE workers (
  id text PRIMARY KEY,
  name text NOT NULL,
  pool text NOT NULL,
  machine text NOT NULL,
  boot_id text NOT NULL,
  address text NOT NULL,
  network text NOT NULL,
  resources text NOT NULL,
  attributes text NOT NULL,
  terms text NOT NULL,
  agent_version text NOT NULL,
  state text NOT NULL,
  draining bigint NOT NULL,
  token_hash text NOT NULL,
  join_token text NOT NULL,
  host text NOT NULL,
  instance text,
  ends_at_ms bigint,
  problems text NOT NULL,
  joined_at_ms bigint NOT NULL,
  ended_at_ms bigint,
  version bigint NOT NULL
) /*sqlite WITHOUT ROWID */;

CREATE INDEX workers_live ON workers (id) WHERE ended_at_ms IS NULL;

CREATE TABLE instances (
  id text PRIMARY KEY,
  pool text NOT NULL,
  state text NOT NULL,
  handle text NOT NULL,
  record text NOT NULL,
  created_at_ms bigint NOT NULL,
  ended_at_ms bigint,
  version bigint NOT NULL
) /*sqlite WITHOUT ROWID */;

CREATE INDEX instances_live ON instances (id) WHERE ended_at_ms IS NULL;

CREATE TABLE hosts (
  id text PRIMARY KEY,
  record text NOT NULL,
  version bigint NOT NULL
) /*sqlite WITHOUT ROWID */;

CREATE TABLE pool_spending (
  pool text PRIMARY KEY,
  record text NOT NULL,
  version bigint NOT NULL
) /*sqlite WITHOUT ROWID */;

CREATE TABLE tokens (
  id text PRIMARY KEY,
  kind text NOT NULL,
  name text NOT NULL,
  tenant text NOT NULL,
  user_name text NOT NULL,
  scopes text NOT NULL,
  hash text NOT NULL,
  pool text NOT NULL,
  max_live_workers bigint NOT NULL,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint,
  attempt text,
  revoked_at_ms bigint,
  last_used_at_ms bigint
) /*sqlite WITHOUT ROWID */;

-- In commit order on both databases; also the changelog that peers will read, tombstones included.
CREATE TABLE events (
  epoch bigint NOT NULL,
  seq bigint NOT NULL,
  at_ms bigint NOT NULL,
  kind text NOT NULL,
  tenant text NOT NULL,
  job text,
  task text,
  attempt text,
  worker text,
  data text NOT NULL,
  hash text,
  tombstone bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (epoch, seq)
) /*sqlite WITHOUT ROWID */;

CREATE INDEX events_of_job ON events (job, epoch, seq) WHERE job IS NOT NULL;
-- What somebody did that others must be able to look up.
CREATE INDEX events_audited ON events (tenant, epoch, seq) WHERE hash IS NOT NULL;

-- The last entry of each tenant's chain of what somebody did.
CREATE TABLE audit_heads (
  tenant text PRIMARY KEY,
  hash text NOT NULL,
  entries bigint NOT NULL
) /*sqlite WITHOUT ROWID */;

CREATE TABLE tenants (
  name text PRIMARY KEY,
  created_at_ms bigint NOT NULL,
  suspended bigint NOT NULL,
  note text NOT NULL,
  version bigint NOT NULL
) /*sqlite WITHOUT ROWID */;

-- Users of whom something is known beside their tokens and what their issuers say.
CREATE TABLE users (
  tenant text NOT NULL,
  name text NOT NULL,
  roles text NOT NULL,
  left_at_ms bigint,
  version bigint NOT NULL,
  PRIMARY KEY (tenant, name)
) /*sqlite WITHOUT ROWID */;

-- What a tenant, or with a user one of its users, may use; an absent limit limits nothing.
CREATE TABLE budgets (
  tenant text NOT NULL,
  user_name text NOT NULL,
  weight double precision NOT NULL,
  device_millis bigint,
  device_hours_per_day double precision,
  device_hours_per_month double precision,
  micros_per_day bigint,
  micros_per_month bigint,
  mode text NOT NULL,
  at_limit text NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (tenant, user_name)
) /*sqlite WITHOUT ROWID */;

-- What it has used: sums of the ledger for this day and month, and the decayed use of fair shares.
CREATE TABLE accounts (
  tenant text NOT NULL,
  user_name text NOT NULL,
  cpu_use double precision NOT NULL,
  memory_use double precision NOT NULL,
  device_use double precision NOT NULL,
  as_of_ms bigint NOT NULL,
  day bigint NOT NULL,
  day_micros bigint NOT NULL,
  day_device_ms bigint NOT NULL,
  month bigint NOT NULL,
  month_micros bigint NOT NULL,
  month_device_ms bigint NOT NULL,
  told text NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (tenant, user_name)
) /*sqlite WITHOUT ROWID */;

-- Charges, in double entry: the sum over all rows is 0.
CREATE TABLE ledger (
  until_ms bigint NOT NULL,
  attempt text NOT NULL,
  n bigint NOT NULL,
  account text NOT NULL,
  tenant text NOT NULL,
  user_name text NOT NULL,
  pool text NOT NULL,
  micros bigint NOT NULL,
  device_ms bigint NOT NULL,
  PRIMARY KEY (until_ms, attempt, n, account)
) /*sqlite WITHOUT ROWID */;

-- The same by day (since 1970, UTC), tenant, user and pool, with what the ledger does not count.
CREATE TABLE usage_days (
  day bigint NOT NULL,
  tenant text NOT NULL,
  user_name text NOT NULL,
  pool text NOT NULL,
  micros bigint NOT NULL,
  device_ms bigint NOT NULL,
  cpu_ms bigint NOT NULL,
  attempts bigint NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (day, tenant, user_name, pool)
) /*sqlite WITHOUT ROWID */;

-- Checkpoints of a task, oldest first; those beyond what the job keeps are deleted.
CREATE TABLE checkpoints (
  job text NOT NULL,
  task_index bigint NOT NULL,
  n bigint NOT NULL,
  attempt text NOT NULL,
  tenant text NOT NULL,
  manifest text NOT NULL,
  bytes bigint NOT NULL,
  files bigint NOT NULL,
  reason text NOT NULL,
  taken_boot_ms bigint NOT NULL,
  created_at_ms bigint NOT NULL,
  PRIMARY KEY (job, task_index, n)
) /*sqlite WITHOUT ROWID */;

-- Bytes of a tenant under a name: what data:NAME means to jobs that are submitted now.
CREATE TABLE data_sets (
  tenant text NOT NULL,
  name text NOT NULL,
  version bigint NOT NULL,
  kind text NOT NULL,
  hash text NOT NULL,
  bytes bigint NOT NULL,
  files bigint NOT NULL,
  created_at_ms bigint NOT NULL,
  created_by text NOT NULL,
  PRIMARY KEY (tenant, name)
) /*sqlite WITHOUT ROWID */;

-- For whom the attempts of a job get tokens of other services, while the job lives: never a token.
-- What is sealed opens only with the master key, which is not here.
CREATE TABLE job_downstream (
  job text PRIMARY KEY,
  tenant text NOT NULL,
  issuer text NOT NULL,
  subject text NOT NULL,
  audiences text NOT NULL,
  sealed text
) /*sqlite WITHOUT ROWID */;

-- What people are still to be told; deleted once their channel has taken it.
CREATE TABLE notices (
  id text PRIMARY KEY,
  tenant text NOT NULL,
  channel text NOT NULL,
  kind text NOT NULL,
  job text,
  facts text NOT NULL,
  created_at_ms bigint NOT NULL,
  tries bigint NOT NULL,
  next_try_at_ms bigint NOT NULL,
  last_error text NOT NULL
) /*sqlite WITHOUT ROWID */;
