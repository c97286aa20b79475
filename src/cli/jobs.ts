/** drover jobs: the list of jobs, newest first as the server gives it. */
import { JOB_STATES } from '../model/job.ts';
import type { JobView } from '../protocol/jobs.ts';
import { UsageError } from './args.ts';
import { defineCommand, takePositionals } from './command.ts';
import { ago, shortDuration } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { nearest } from '../lib/nearest.ts';
import { fetchList, pagingOptions, printList } from './paging.ts';
import { statePaint } from './states.ts';
import type { Column } from './table.ts';

export const jobsCommand = defineCommand({
  name: 'jobs',
  summary: 'List jobs',
  usage: ['jobs [--state S] [--name N] [--owner O] [--parent ID] [--limit N | --all]'],
  options: {
    state: { kind: 'text', value: 'S', help: JOB_STATES.join(', ').toLowerCase() },
    name: { kind: 'text', value: 'N', help: 'only jobs of this name' },
    owner: { kind: 'text', value: 'O', help: 'only jobs of this user' },
    parent: { kind: 'text', value: 'ID', help: 'only what this job has submitted' },
    ...pagingOptions,
  },
  async run(parsed, context) {
    takePositionals(parsed, []);
    const { state, name, owner, parent } = parsed.options;
    const filters = { state: state && checkedState(state), name, owner, parent };
    const client = context.client();
    const listed = await fetchList(parsed.options, (page) =>
      client.listJobs({ ...filters, ...page }),
    );
    const filtered = Object.values(filters).some((filter) => filter !== undefined);
    const whenEmpty = filtered
      ? 'no job matches; `drover jobs` shows all'
      : 'no jobs yet; try: drover run -- echo hello';
    await printList(context, listed, columns(context.io.now()), whenEmpty);
    return EXIT.ok;
  },
});

function checkedState(text: string): string {
  const state = text.toUpperCase();
  if ((JOB_STATES as readonly string[]).includes(state)) return state;
  const close = nearest(state, JOB_STATES);
  throw new UsageError(
    `--state ${JSON.stringify(text)} is no state of a job`,
    close ? `did you mean ${close.toLowerCase()}?` : JOB_STATES.join(', ').toLowerCase(),
  );
}

function columns(nowMs: number): Column<JobView>[] {
  return [
    { title: 'ID', value: (job) => job.id },
    { title: 'NAME', value: (job) => job.name || '-' },
    {
      title: 'STATE',
      value: (job) => job.state,
      paint: (job, paint) => statePaint(job.state, paint),
    },
    { title: 'TASKS', value: taskShare },
    { title: 'OWNER', value: (job) => job.owner },
    { title: 'CREATED', value: (job) => ago(job.createdAtMs, nowMs) },
    { title: 'RAN', value: (job) => ranFor(job, nowMs) },
    { title: 'REASON', value: (job) => job.reason },
  ];
}

function taskShare({ tasks }: JobView): string {
  return tasks.total === 1 ? '1' : `${tasks.succeeded}/${tasks.total}`;
}

export function ranFor(
  job: { startedAtMs: number | null; endedAtMs: number | null },
  nowMs: number,
): string {
  if (job.startedAtMs === null) return '-';
  return shortDuration((job.endedAtMs ?? nowMs) - job.startedAtMs);
}
