/**
 * Faults for jobs that save what they do: their processes, their machine and its agent are killed
 * at random, seeded, until enough attempts have ended by it.
 */
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { seededRandom, type Random } from '../../src/lib/random.ts';
import type { AttemptView } from '../../src/protocol/jobs.ts';
import { isAlive, killPid, processesOf } from './processes.ts';
import type { TestAgent, TestServer } from './server.ts';
import { until } from './wait.ts';

/** Each ends the attempt it is done to, except the agent's death alone, which it survives. */
type Fault = 'group' | 'machine' | 'paused' | 'agent';

export interface Killing {
  server: TestServer;
  agents: TestAgent[];
  job: string;
  /** Attempts that must have ended by a fault. */
  kills: number;
  seed: number;
  /** How long an attempt works before it is hit, at most. */
  longestMs: number;
  say: (line: string) => void;
}

export interface Kills {
  done: Record<Fault, number>;
  /** Those that hit a command which had begun to work, not one that was still loading. */
  atWork: number;
}

/** How long it waits for a command to begin its work; then it is hit whatever it does. */
const BEGIN_MS = 30_000;
/** So many of the faults wait for that; the others come at any time, as faults do. */
const WAITING_SHARE = 0.8;

export async function killAtRandom(options: Killing): Promise<Kills> {
  const { server, job, kills, longestMs, say } = options;
  const random = seededRandom(options.seed);
  const began = Date.now();
  const deck = shuffledFaults(kills, random);
  const done: Record<Fault, number> = { group: 0, machine: 0, paused: 0, agent: 0 };
  const hit = new Set<string>();
  let atWork = 0;
  while (hit.size < kills) {
    const attempt = await until(`an attempt of ${job} runs`, async () => {
      const running = (await server.attempts(job)).filter(
        ({ uid, state }) => state === 'RUNNING' && !hit.has(uid),
      );
      return running[Math.floor(random.next() * running.length)];
    });
    const agent = options.agents.find((one) => one.taskPid(attempt.uid) !== undefined);
    if (!agent) continue;
    if (random.next() < WAITING_SHARE) await beginning(agent, attempt.uid);
    await delay(random.next() * longestMs);
    const fault = random.next() < 0.1 ? 'agent' : deck[hit.size]!;
    const worked = hasBegun(agent, attempt.uid);
    if (!(await hurt(server, agent, attempt, fault))) continue;
    done[fault]++;
    const seconds = ((Date.now() - began) / 1000).toFixed(1);
    const what = worked ? 'at work' : 'still loading';
    say(`${seconds} s, ${fault}: ${attempt.task}#${attempt.n} on ${agent.name}, ${what}`);
    if (fault === 'agent') continue;
    hit.add(attempt.uid);
    if (worked) atWork++;
  }
  const total = Object.entries(done).map(([fault, count]) => `${fault} ${count}`);
  say(`${kills} attempts killed (${total.join(', ')}), ${atWork} of them at work`);
  return { done, atWork };
}

/**
 * One pause, which costs a whole lease, then as many of each other kind, in any order: a task waits
 * twice as long after each further failure, and after each further interruption, so that ten of a
 * kind would take minutes.
 */
function shuffledFaults(kills: number, random: Random): Fault[] {
  const faults = Array.from({ length: kills }, (_, at): Fault => {
    if (at === 0) return 'paused';
    return at % 2 === 1 ? 'group' : 'machine';
  });
  for (let at = faults.length - 1; at > 0; at--) {
    const other = Math.floor(random.next() * (at + 1));
    [faults[at], faults[other]] = [faults[other]!, faults[at]!];
  }
  return faults;
}

/** The examples say a line before their first step. */
function hasBegun(agent: TestAgent, uid: string): boolean {
  const file = path.join(agent.dataDir, 'attempts', uid, 'stdout');
  const pid = agent.taskPid(uid);
  const stat = statSync(file, { throwIfNoEntry: false });
  return pid !== undefined && isAlive(pid) && (stat?.size ?? 0) > 0;
}

async function beginning(agent: TestAgent, uid: string): Promise<void> {
  const patience = Date.now() + BEGIN_MS;
  while (!hasBegun(agent, uid) && Date.now() < patience) await delay(50);
}

/** False when it was over before. */
async function hurt(
  server: TestServer,
  agent: TestAgent,
  { uid, task, n }: AttemptView,
  fault: Fault,
): Promise<boolean> {
  const pid = agent.taskPid(uid);
  if (pid === undefined || !isAlive(pid)) return false;
  if (fault === 'group') {
    killPid(-pid, 'SIGKILL');
    return true;
  }
  if (fault === 'paused') {
    agent.process().send('SIGSTOP');
    await until(`${task}#${n} is lost`, async () => {
      const attempts = await server.attempts(task.split('.')[0]!);
      return attempts.some((one) => one.uid === uid && one.state === 'ENDED');
    });
    agent.process().send('SIGCONT');
    return true;
  }
  await agent.kill();
  if (fault === 'machine') {
    // The shim too, as when the machine goes: nobody is left to write down how it ended.
    const text = readFileSync(path.join(agent.dataDir, 'attempts', uid, 'pid'), 'latin1');
    killPid(Number(text.split(' ')[2]), 'SIGKILL');
    killPid(-pid, 'SIGKILL');
    for (const left of processesOf([uid])) killPid(left.pid, 'SIGKILL');
  }
  agent.start();
  return true;
}
