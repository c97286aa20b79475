/** A receipt in words: one line for the end of a run, sentences for a mail. */
import { memorySize, shortDuration, showMoney } from '../../lib/show.ts';
import type { Fault } from '../../model/receipt.ts';
import type { Receipt } from '../receipt.ts';

type Known = Omit<Receipt, 'line' | 'sentences'>;

/** Places and losses beyond these are counted. */
const SHOWN = 3;

const BLAME: Record<Fault, string> = {
  host: 'machines that were lost',
  memory: 'running out of memory',
  preemption: 'preemption',
  'time-limit': 'its time limit',
  start: 'not starting',
  gang: 'other members of the gang',
  command: 'its own command',
  cancel: 'being cancelled',
};

const ENDED = {
  PENDING: 'waits',
  RUNNING: 'runs',
  SUCCEEDED: 'succeeded',
  FAILED: 'failed',
  CANCELLED: 'was cancelled',
  UNSCHEDULABLE: 'could not be placed in time',
} as const;

export function lineOf(known: Known): string {
  const parts = [
    `ran ${shortDuration(known.time.runningMs)}${placesPart(known)}`,
    `waited ${shortDuration(known.time.waitingMs)}`,
  ];
  if (known.costMicros > 0) parts.push(`cost ${showMoney(known.costMicros)}`);
  const [worst] = known.lost;
  // What the command itself did to its time is told by its exit code.
  const blamed = worst && (worst.fault !== 'command' || known.attempts > known.tasks.total);
  if (blamed) parts.push(`lost ${shortDuration(lostMs(known))} to ${BLAME[worst.fault]}`);
  return `${headOf(known)}: ${parts.join(', ')}`;
}

export function sentencesOf(known: Known): string[] {
  const { time, reason, checkpoints, resumes } = known;
  const sentences = [`${headOf(known)}${reason ? `: ${reason}` : ''}.`];
  const stopping = time.stoppingMs > 0 ? `, was stopping ${shortDuration(time.stoppingMs)}` : '';
  const waited = `It waited ${shortDuration(time.waitingMs)}`;
  const ran = `ran ${shortDuration(time.runningMs)}${stopping}`;
  sentences.push(`${waited}, took ${shortDuration(time.startingMs)} to start, ${ran}.`);
  if (known.ranOn.length > 0) sentences.push(`It ran${placesPart(known)}.`);
  if (known.costMicros > 0) sentences.push(`It cost ${showMoney(known.costMicros)}.`);
  if (known.peakMemoryBytes !== null) {
    sentences.push(`It used up to ${memorySize(known.peakMemoryBytes)} of memory.`);
  }
  for (const { fault, attempts, ms, why } of known.lost) {
    const tries = attempts === 1 ? '' : ` in ${attempts} attempts`;
    const cause = why ? `: ${why}` : '';
    sentences.push(`It lost ${shortDuration(ms)} to ${BLAME[fault]}${tries}${cause}.`);
  }
  if (checkpoints > 0) {
    const times = resumes === 1 ? 'once' : `${resumes} times`;
    const resumed = resumes > 0 ? `, and it resumed ${times}` : '';
    sentences.push(`${count(checkpoints, 'checkpoint was', 'checkpoints were')} kept${resumed}.`);
  }
  if (!known.complete) sentences.push('There is more than was summed up here.');
  return sentences;
}

function headOf({ job, name, state, tasks }: Known): string {
  const label = name ? `${job} (${name})` : job;
  const done = state === 'SUCCEEDED' || state === 'PENDING' || state === 'RUNNING';
  const share = tasks.total > 1 && !done ? `, ${tasks.succeeded} of ${tasks.total} succeeded` : '';
  return `job ${label} ${ENDED[state]}${share}`;
}

function placesPart({ ranOn }: Known): string {
  if (ranOn.length === 0) return '';
  const shown = ranOn.slice(0, SHOWN).map(({ name, devices }) => {
    return devices ? `${name} (${devices})` : name;
  });
  const more = ranOn.length > SHOWN ? ` and ${ranOn.length - SHOWN} more` : '';
  return ` on ${shown.join(', ')}${more}`;
}

function lostMs({ lost }: Known): number {
  return lost.reduce((sum, { ms }) => sum + ms, 0);
}

function count(amount: number, one: string, many: string): string {
  return `${amount} ${amount === 1 ? one : many}`;
}
