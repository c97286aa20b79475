/** An explanation as a fake gives it: the job waits behind nobody, for no known reason. */
import type { JobView } from './jobs.ts';
import type { WhyView } from './why.ts';

export function fakeWhy(job: JobView, ahead: Pick<JobView, 'id' | 'name'>[] = []): WhyView {
  const waits = job.tasks.pending > 0;
  const ended = job.endedAtMs !== null;
  return {
    job: job.id,
    state: job.state,
    code: ended ? 'ENDED' : waits ? 'NO_WORKER' : 'RUNNING',
    sentence: ended ? `it has ended, ${job.state}` : waits ? 'no worker has joined yet' : 'it runs',
    workers: [],
    position: waits ? ahead.length + 1 : null,
    ahead: waits ? ahead.length : null,
    aheadSample: ahead.map(({ id, name }) => ({ job: id, name, rule: 'it is older' })),
    rule: waits ? 'the oldest first' : '',
    quota: null,
    predictedStartAtMs: null,
    suggestions: [],
    tasks: { waiting: job.tasks.pending, running: job.tasks.running },
    atMs: job.createdAtMs,
  };
}
