/** The controller's metrics, read from the live state when somebody asks. */
import { Counter, Gauge, Registry } from 'prom-client';
import type { State } from '../state/state.ts';
import type { Committer } from './committer.ts';
import type { Loop } from './loop.ts';
import type { Sessions } from './sessions.ts';

export interface ControlMetrics {
  placed(tasks: number, staleTasks: number): void;
  render(): Promise<string>;
}

export interface MetricsOptions {
  state: State;
  committer: Committer;
  sessions: Sessions;
  loops: () => Loop[];
}

export function createMetrics(options: MetricsOptions): ControlMetrics {
  const { state, committer, sessions, loops } = options;
  const registry = new Registry();
  const registers = [registry];
  const gauge = (name: string, help: string, collect: (gauge: Gauge) => void, labels?: string[]) =>
    new Gauge({
      name,
      help,
      registers,
      labelNames: labels ?? [],
      collect() {
        collect(this);
      },
    });
  const counter = (name: string, help: string, value: () => number) =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(value());
      },
    });
  const placed = new Counter({
    name: 'drover_tasks_placed_total',
    help: 'Tasks assigned to a worker',
    registers,
  });
  const stale = new Counter({
    name: 'drover_placements_stale_total',
    help: 'Planned tasks that were refused because the state had changed',
    registers,
  });
  gauge('drover_tasks', 'Live tasks by state', (g) => setTasks(g, state), ['state']);
  gauge('drover_workers', 'Live workers by state', (g) => setWorkers(g, state), ['state']);
  gauge('drover_jobs_live', 'Jobs that have not ended', (g) => g.set(state.jobs.size));
  gauge('drover_attempts_live', 'Attempts that have not ended', (g) => g.set(state.attempts.size));
  gauge('drover_controller_epoch', 'The epoch of this controller', (g) => g.set(state.epoch));
  const waiting = 'Notices that no channel has taken yet';
  gauge('drover_notices_queued', waiting, (g) => g.set(state.notices.queued.size));
  gauge('drover_syncs_parked', 'Agent calls held open', (g) => g.set(sessions.parkedCount()));
  counter('drover_store_batches_total', 'Batches committed', () => committer.batches());
  counter('drover_store_rows_total', 'Rows written', () => committer.rows());
  counter('drover_events_total', 'Events committed or about to be', () => state.seq);
  const loopLabels = ['loop'];
  gauge(
    'drover_loop_healthy',
    'Whether the loop finished its last step in time and without error',
    (g) => {
      for (const loop of loops()) {
        const { name, healthy } = loop.health();
        g.set({ loop: name }, healthy ? 1 : 0);
      }
    },
    loopLabels,
  );
  gauge(
    'drover_loop_failures',
    'Steps that threw since the start',
    (g) => {
      for (const loop of loops()) g.set({ loop: loop.health().name }, loop.health().failures);
    },
    loopLabels,
  );
  return {
    placed(tasks, staleTasks) {
      placed.inc(tasks);
      stale.inc(staleTasks);
    },
    render: () => registry.metrics(),
  };
}

function setTasks(gauge: Gauge, state: State): void {
  let [pending, assigned, running] = [0, 0, 0];
  for (const { counts } of state.jobs.values()) {
    pending += counts.PENDING;
    assigned += counts.ASSIGNED;
    running += counts.RUNNING;
  }
  gauge.set({ state: 'PENDING' }, pending);
  gauge.set({ state: 'ASSIGNED' }, assigned);
  gauge.set({ state: 'RUNNING' }, running);
}

function setWorkers(gauge: Gauge, state: State): void {
  const counts = { ONLINE: 0, SUSPECT: 0, DRAINING: 0 };
  for (const { worker } of state.workers.values()) {
    if (worker.draining) counts.DRAINING++;
    else if (worker.state !== 'LOST') counts[worker.state]++;
  }
  for (const [name, count] of Object.entries(counts)) gauge.set({ state: name }, count);
}
