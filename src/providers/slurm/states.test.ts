/** What states, reasons, refusals and reservations of Slurm mean. */
import { describe, expect, test } from 'vitest';
import { othersOf, OTHERS_LISTED } from './listing.ts';
import { createJobNames } from './names.ts';
import type { JobDetail, QueuedJob } from './queue.ts';
import { refusalOf, submissionRefused } from './refusals.ts';
import { coming, nodesOf, readReservations, windowFor } from './reservations.ts';
import { meaningOf } from './states.ts';

const job = (state: string, reason = 'None'): QueuedJob => ({
  ...{ id: '1', place: null, name: 'x', user: 'u', state, reason, nodes: 'n1', host: 'n1' },
  ...{ startsAtMs: null, leftMs: null, nodeCount: '1', devices: 'N/A', partition: 'gpu' },
});

describe('states', () => {
  test.each([
    ['PENDING', 'queued', null],
    ['REQUEUED', 'queued', null],
    ['SPECIAL_EXIT', 'queued', null],
    ['CONFIGURING', 'booting', null],
    ['RUNNING', 'running', null],
    ['SUSPENDED', 'running', null],
    ['COMPLETING', 'ending', null],
    ['SOMETHING_NEW', 'ending', null],
    ['COMPLETED', 'gone', null],
    ['CANCELLED', 'gone', null],
    ['TIMEOUT', 'gone', null],
    ['PREEMPTED', 'gone', null],
    ['DEADLINE', 'gone', null],
    ['OUT_OF_MEMORY', 'gone', 'WORKLOAD_FATAL'],
    ['NODE_FAIL', 'gone', 'INFRA_FATAL'],
    ['BOOT_FAIL', 'gone', 'INFRA_FATAL'],
  ])('%s is %s', (state, phase, failure) => {
    const meaning = meaningOf(job(state), undefined);
    expect(meaning).toMatchObject({ phase, failure });
    expect(meaning.reason).not.toBe('');
  });

  const end = (code: number, signal = 0): JobDetail => ({ restarts: 0, code, signal });
  test.each([
    ['NonZeroExitCode', end(3), 'WORKLOAD_FATAL', 'its script ended with 3'],
    ['NonZeroExitCode', end(127), 'WORKLOAD_FATAL', 'a command was not found'],
    ['NonZeroExitCode', end(75), 'INFRA_FATAL', 'the node could not join'],
    ['RaisedSignal:9(Killed)', end(0, 9), 'INFRA_FATAL', 'ended by signal 9'],
    ['JobLaunchFailure', end(1), 'INFRA_FATAL', 'could not start it (JobLaunchFailure)'],
    ['BadConstraints', end(0, 1), 'WORKLOAD_FATAL', 'no node ever fits'],
    ['NonZeroExitCode', undefined, 'WORKLOAD_FATAL', 'NonZeroExitCode'],
  ])('FAILED by %s', (reason, detail, failure, words) => {
    const meaning = meaningOf(job('FAILED', reason), detail);
    expect(meaning).toMatchObject({ phase: 'gone', failure });
    expect(meaning.reason).toContain(words);
  });

  test.each([
    ['Priority', 'Priority'],
    ['Resources', 'Resources'],
    ['JobHeldAdmin', 'ask them'],
    ['launch failed requeued held', 'slurmd'],
    ['PartitionNodeLimit', 'more nodes than'],
    ['BadConstraints', 'check constraint'],
    ['AssocMaxJobsLimit', 'limit of the site'],
    ['QOSMaxGRESPerUser', 'limit of the site'],
    ['DependencyNeverSatisfied', 'has failed'],
    ["Job's account not known, so it can't use this partition", 'check account'],
    ['ReqNodeNotAvail, Reserved for maintenance', 'down, drained or reserved'],
  ])('what waits for %s says so', (reason, words) => {
    const meaning = meaningOf(job('PENDING', reason), undefined);
    expect(meaning.reason).toContain(words);
    expect(meaning.reason.startsWith(reason)).toBe(true);
  });

  test(`of others at most ${OTHERS_LISTED} are told, and none that has ended`, () => {
    const names = createJobNames('c', 'p');
    const many = Array.from({ length: OTHERS_LISTED + 5 }, () => job('RUNNING'));
    expect(othersOf([job('COMPLETED'), ...many], names)).toHaveLength(OTHERS_LISTED);
    expect(othersOf([job('COMPLETED')], names)).toEqual([]);
  });
});

describe('refusals', () => {
  const ended = (stderr: string, code = 1) =>
    ({ kind: 'ended', code, stdout: '', stderr }) as const;
  const submission = 'sbatch: error: Batch job submission failed: ';
  test.each([
    ['Invalid account or account/partition combination specified', 'configuration'],
    ['Invalid qos specification', 'configuration'],
    ['Job violates accounting/QOS policy (job submit limit, user limits)', 'capacity'],
    ['Slurm temporarily unable to accept job, sleeping and retrying', 'capacity'],
    ['Requested time limit is invalid (missing or exceeds some limit)', 'configuration'],
    ['Invalid generic resource (gres) specification', 'configuration'],
    ["User's group not permitted to use this partition", 'configuration'],
    ['Unable to contact slurm controller (connect failure)', 'unreachable'],
    ['Something that nobody has seen', 'configuration'],
  ])('%s', (words, refusal) => {
    const result = submissionRefused(ended(`sbatch: warning: x\n${submission}${words}\n`));
    expect(result).toMatchObject({ kind: 'refused', refusal });
    expect(result.reason).toContain(words);
  });

  test('after words that leave it open, nobody knows', () => {
    const open = ['Socket timed out on send/recv operation', 'Zero Bytes were transmitted'];
    for (const words of open) {
      expect(submissionRefused(ended(submission + words))).toMatchObject({ kind: 'unknown' });
    }
    expect(submissionRefused({ kind: 'lost', reason: 'x' })).toMatchObject({ kind: 'unknown' });
  });

  test('without a word there is still a sentence; a missing program is named', () => {
    expect(refusalOf('sbatch', ended('', 2)).reason).toMatch(/ended with 2/);
    const missing = refusalOf('sbatch', ended('sh: sbatch: not found', 127));
    expect(missing).toMatchObject({ refusal: 'configuration' });
    expect(missing.reason).toMatch(/^sbatch is not there .*commandFolder/);
    const unreachable = { kind: 'unreachable', problem: 'network', reason: 'no route' } as const;
    expect(refusalOf('sinfo', unreachable)).toMatchObject({ refusal: 'unreachable' });
    const key = { kind: 'unreachable', problem: 'host-key', reason: 'changed' } as const;
    expect(refusalOf('sinfo', key)).toMatchObject({ refusal: 'configuration', reason: 'changed' });
  });
});

describe('reservations', () => {
  const text = [
    'ReservationName=upgrade StartTime=2026-11-16T08:00:00 EndTime=2026-11-16T10:00:00',
    'Duration=02:00:00 Nodes=n[1-2] NodeCnt=2 Flags=MAINT,IGNORE_JOBS State=INACTIVE',
  ].join(' ');
  const course = text.replace('upgrade', 'course').replace('MAINT,IGNORE_JOBS', 'SPEC_NODES');
  const one = text.replace('n[1-2]', 'n1').replace('upgrade', 'one');
  const all = readReservations(`No header\n${one}\n${text}\nReservationName=cut StartTime=2026`);
  const at = (clock: string): number => Date.parse(`2026-11-16T${clock}:00Z`);
  const here = (clock: string, own = '') => ({ own, nodes: ['n1', 'n2'], nowMs: at(clock) });
  const MINUTE = 60_000;

  test('are read, and only those that take every node count', () => {
    expect(all.map(({ name }) => name)).toEqual(['one', 'upgrade']);
    expect(coming(all, ['n1', 'n2'], at('07:00')).map(({ name }) => name)).toEqual(['upgrade']);
    expect(coming(all, ['n1', 'n2'], at('10:00'))).toEqual([]);
    expect(coming(all, [], at('07:00'))).toEqual([]);
    expect(readReservations('No reservations in the system')).toEqual([]);
  });

  test('shorten what is asked for to what is left, if that is enough', () => {
    const asked = { wantedMs: 180 * MINUTE, neededMs: 60 * MINUTE };
    expect(windowFor(all, here('06:00'), asked)).toMatchObject({ timeMs: 120 * MINUTE });
    expect(windowFor(all, here('01:00'), asked)).toMatchObject({
      timeMs: 180 * MINUTE,
      notice: '',
    });
    expect(windowFor(all, here('06:00'), { wantedMs: 0, neededMs: MINUTE })).toMatchObject({
      timeMs: 120 * MINUTE,
      notice: expect.stringContaining('maintenance upgrade'),
    });
    const closed = { kind: 'closed', untilMs: at('10:00') };
    expect(windowFor(all, here('07:30'), asked)).toMatchObject(closed);
    expect(windowFor(all, here('09:00'), asked)).toMatchObject(closed);
    expect(windowFor(all, here('10:01'), asked)).toMatchObject({ timeMs: 180 * MINUTE });
  });

  test('of our own keep jobs inside', () => {
    const mine = readReservations(course);
    const asked = { wantedMs: 0, neededMs: 30 * MINUTE };
    expect(windowFor(mine, here('09:00', 'course'), asked)).toMatchObject({ timeMs: 60 * MINUTE });
    expect(windowFor(mine, here('05:00', 'course'), asked)).toMatchObject({ timeMs: 120 * MINUTE });
    expect(windowFor(mine, here('09:45', 'course'), asked)).toMatchObject({ kind: 'closed' });
    expect(windowFor(mine, here('09:00'), asked)).toMatchObject({ kind: 'closed' });
  });

  test('a partition has its nodes, none named means the default one', () => {
    const partitions = 'gpu*|n[1-2]\nphys|n1\nbroken\n';
    expect(nodesOf(partitions, '')).toEqual(['n1', 'n2']);
    expect(nodesOf(partitions, 'phys')).toEqual(['n1']);
    expect(nodesOf(partitions, 'nope')).toEqual([]);
  });
});
