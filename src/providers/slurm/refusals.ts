/** What sbatch and the way to it say when they refuse, and what to try. */
import type { LaunchResult, Refusal } from '../contract.ts';
import { needsPerson, type RunResult } from '../remote/contract.ts';

export type Refused = Extract<LaunchResult, { kind: 'refused' }>;
export type Unknown = Extract<LaunchResult, { kind: 'unknown' }>;

/** A person must change something first; the pool backs off by itself on top of it. */
const CONFIGURATION_RETRY_MS = 60_000;
const CAPACITY_RETRY_MS = 60_000;
const UNREACHABLE_RETRY_MS = 15_000;
const RETRY_MS: Record<Refusal, number> = {
  configuration: CONFIGURATION_RETRY_MS,
  capacity: CAPACITY_RETRY_MS,
  unreachable: UNREACHABLE_RETRY_MS,
};

export function refused(refusal: Refusal, reason: string, retryAfterMs?: number): Refused {
  return { kind: 'refused', refusal, reason, retryAfterMs: retryAfterMs ?? RETRY_MS[refusal] };
}

interface Meaning {
  words: RegExp;
  refusal: Refusal;
  advice: string;
}

/** The first that fits counts. */
const MEANINGS: Meaning[] = [
  {
    words: /invalid partition|Invalid partition name/i,
    refusal: 'configuration',
    advice: 'the site has no such partition: set slurm.partition to one that sinfo shows',
  },
  {
    words: /Invalid account|account\/partition combination/i,
    refusal: 'configuration',
    advice: 'this account may not be used: check slurm.account with sacctmgr show assoc',
  },
  {
    words: /Invalid qos/i,
    refusal: 'configuration',
    advice: 'this account has no such qos: check slurm.qos with sacctmgr show assoc',
  },
  {
    words: /(QOS|accounting).*(policy|limit)|submit limit|size limit|MaxSubmit/i,
    refusal: 'capacity',
    advice: "a limit of the site's on the account is reached; it is tried again",
  },
  {
    words: /temporarily unable to accept|queue is full|MaxJobCount|Resource temporarily/i,
    refusal: 'capacity',
    advice: 'Slurm takes no more jobs just now; it is tried again',
  },
  {
    words: /reservation is invalid|Requested reservation/i,
    refusal: 'configuration',
    advice: 'there is no such reservation, or not for us: scontrol show reservation',
  },
  {
    words: /node configuration is not available|More processors requested|Memory specification/i,
    refusal: 'configuration',
    advice: 'no node of the partition has what is asked for: check largestWorker and gres',
  },
  {
    words: /generic resource|gres/i,
    refusal: 'configuration',
    advice: 'no node has such devices: check slurm.gres with sinfo -o %G',
  },
  {
    words: /feature specification/i,
    refusal: 'configuration',
    advice: 'no node has such a feature: check slurm.constraint with sinfo -o %f',
  },
  {
    words: /time limit is invalid|Requested time limit/i,
    refusal: 'configuration',
    advice: 'the partition gives less time: lower slurm.timeLimitMs',
  },
  {
    words: /job array specification/i,
    refusal: 'configuration',
    advice: "more at once than Slurm's MaxArraySize: lower maxPending of the pool",
  },
  {
    words: /does not look like a batch script|unrecognized option|invalid option/i,
    refusal: 'configuration',
    advice: 'check slurm.template and slurm.options',
  },
  {
    words:
      /not permitted|Access.*denied|Permission denied|password is required|not in the sudoers/i,
    refusal: 'configuration',
    advice: 'the account may not do this: check partition, users and become with the site',
  },
  {
    words: /unknown user|does not exist|Invalid user/i,
    refusal: 'configuration',
    advice: 'the site has no such Unix account: check fleet.sites users',
  },
  {
    words: /Unable to contact slurm controller|connect failure|authentication|munge/i,
    refusal: 'unreachable',
    advice: 'the controller of Slurm does not answer; it is tried again',
  },
];

/** After these nobody knows whether the job is in the queue. */
const MAYBE_SENT = /timed out|Zero Bytes|Unexpected message|Connection reset|Broken pipe/i;

/** Exit codes of `timeout`, and of a shell whose command was killed. */
const TIMED_OUT = new Set([124, 137]);

/** What an answer of `program` other than success means before anything was submitted. */
export function refusalOf(program: string, result: RunResult): Refused {
  if (result.kind === 'unreachable') {
    return refused(needsPerson(result.problem) ? 'configuration' : 'unreachable', result.reason);
  }
  if (result.kind === 'lost') return refused('unreachable', `${program}: ${result.reason}`);
  const said = lastWords(result.stderr) || lastWords(result.stdout);
  if (result.code === 127) {
    const where = 'put it on the path of a login without a terminal, or set commandFolder';
    return refused('configuration', `${program} is not there (${said}): ${where}`);
  }
  const meaning = MEANINGS.find(({ words }) => words.test(said));
  const reason = `${program}: ${said || `it ended with ${result.code} without a word`}`;
  if (!meaning) return refused('configuration', reason);
  return refused(meaning.refusal, `${reason}: ${meaning.advice}`);
}

/** The same of the submission itself, after which it may be there all the same. */
export function submissionRefused(result: RunResult): Refused | Unknown {
  if (result.kind === 'lost') return { kind: 'unknown', reason: `sbatch: ${result.reason}` };
  const wasEnded = result.kind === 'ended' && TIMED_OUT.has(result.code);
  if (result.kind === 'ended' && (wasEnded || MAYBE_SENT.test(result.stderr))) {
    const said = wasEnded ? 'it did not end in time' : lastWords(result.stderr);
    return { kind: 'unknown', reason: `sbatch: ${said}` };
  }
  return refusalOf('sbatch', result);
}

/** Why something could not be learned. */
export function problemOf(program: string, result: RunResult): string | undefined {
  if (result.kind === 'ended' && result.code === 0) return undefined;
  return refusalOf(program, result).reason;
}

/** The lines of errors, without the program's name before each. */
function lastWords(text: string): string {
  const lines = text
    .split('\n')
    .map((line) =>
      line.replace(/^\s*(sbatch|squeue|scancel|scontrol|sinfo): (error: )?/, '').trim(),
    )
    .filter((line) => line !== '' && !line.startsWith('Try "'));
  return lines.slice(-3).join('; ').slice(0, 500);
}
