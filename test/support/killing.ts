/**
 * Faults for jobs that save what they do: their processes, their machine and its agent are killed
 * at random, seeded, until enough attempts have ended by it.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { seededRandom } from '../../src/lib/random.ts';
import type { AttemptView } from '../../src/protocol/jobs.ts';
import { killPid, processesOf } from './processes.ts';
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
  /** How long an attempt runs before it is hit, at most. */
  longestMs: number;
  say: (line: string) => void;
}

/** Returns how often each was done. */
export async function killAtRandom(options: Killing): Promise<Record<Fault, number>> {
  const { server, job, kills, longestMs, say } = options;
  const random = seededRandom(options.seed);
  const done: Record<Fault, number> = { group: 0, machine: 0, paused: 0, agent: 0 };
  const hit = new Set<string>();
  let ended = 0;
  while (ended < kills) {
    const attempt = await until(`an attempt of ${job} runs`, async () => {
      const running = (await server.attempts(job)).filter(
        ({ uid, state }) => state === 'RUNNING' && !hit.has(uid),
      );
      return running[Math.floor(random.next() * running.length)];
    });
    await delay(100 + random.next() * longestMs);
    const fault = drawFault(random.next(), done);
    const agent = options.agents.find((one) => one.taskPid(attempt.uid) !== undefined);
    if (!agent) continue;
    say(`${fault}: ${attempt.task}#${attempt.n} on ${agent.name}`);
    if (!(await hurt(server, agent, attempt, fault))) continue;
    done[fault]++;
    if (fault === 'agent') continue;
    hit.add(attempt.uid);
    ended++;
  }
  return done;
}

/** Mostly what ends an attempt; the pause costs a whole lease and comes once in a run. */
function drawFault(drawn: number, { paused }: Record<Fault, number>): Fault {
  if (drawn < 0.1) return 'agent';
  if (drawn < 0.3 && paused === 0) return 'paused';
  return drawn < 0.65 ? 'group' : 'machine';
}

/** False when it was over before. */
async function hurt(
  server: TestServer,
  agent: TestAgent,
  { uid, task, n }: AttemptView,
  fault: Fault,
): Promise<boolean> {
  const pid = agent.taskPid(uid);
  if (pid === undefined) return false;
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
