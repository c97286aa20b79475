/** The part of the Coordinator contract in which work runs: orders, output, stops, tunnels. */
import { expect, test } from 'vitest';
import type { Principal } from '../../src/model/token.ts';
import type { OutputStream } from '../../src/protocol/agent.ts';
import type { Coordinator, SubmitReply } from '../../src/protocol/coordinator.ts';
import type { PageQuery } from '../../src/protocol/jobs.ts';
import type { SubmittedSpec } from '../../src/protocol/jobSpec.ts';
import { TestAgent } from './testAgent.ts';

export interface CoordinatorUnderTest {
  coordinator: Coordinator;
  /** A user token with every scope. */
  adminSecret: string;
  /** A join token of the pool `default`. */
  joinSecret: string;
  close(): Promise<void>;
}

export interface Subject {
  made: CoordinatorUnderTest;
  it: Coordinator;
  admin: Principal;
  submit: (...specs: Partial<SubmittedSpec>[]) => Promise<SubmitReply>;
  submitOne: (fields?: Partial<SubmittedSpec>) => Promise<string>;
}

const FIRST: PageQuery = { limit: 100 };

export function running(subject: () => Subject): void {
  test('a job from submit to exit code, with its output', async () => {
    const { it, admin, made, submitOne } = subject();
    const worker = await it.join(made.joinSecret, machine('m1'));
    const id = await submitOne({ command: ['work', 'ä'], env: { X: '1' } });
    const agent = new TestAgent(it, worker);
    const order = await agent.untilOrdered();
    expect(order).toMatchObject({ job: id, index: 0, n: 1, command: ['work', 'ä'] });
    expect(order.env).toMatchObject({ X: '1' });
    await agent.report({ uid: order.uid, state: 'RUNNING' });
    expect(await it.getJob(admin, id)).toMatchObject({ state: 'RUNNING' });
    expect(await it.cluster(admin)).toMatchObject({ tasks: { running: 1 } });

    const stdout = Buffer.from('größe 大 🐂\nsecond line\n');
    const stderr = Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x0a]);
    await agent.append(order.uid, 'stdout', stdout);
    await agent.append(order.uid, 'stderr', stderr);
    const waiting = it.waitJob(admin, id, 30_000);
    await agent.end({
      uid: order.uid,
      state: 'ENDED',
      cause: 'exited',
      exitCode: 3,
      signal: null,
      stdoutBytes: stdout.length,
      stderrBytes: stderr.length,
    });
    expect(await waiting).toMatchObject({ state: 'FAILED', exitCode: 3, id });
    const attempts = await it.listAttempts(admin, id, FIRST);
    expect(attempts.items).toMatchObject([
      { uid: order.uid, worker: worker.worker, state: 'ENDED', cause: 'exited', exitCode: 3 },
    ]);
    const logs = await allLogs(it, admin, id);
    expect(logs.stdout).toEqual(stdout);
    expect(logs.stderr).toEqual(stderr);
  });

  test('reading on after the last record gives what came since, and a repeat nothing', async () => {
    const { it, admin, made, submitOne } = subject();
    const agent = new TestAgent(it, await it.join(made.joinSecret, machine('m1')));
    const id = await submitOne();
    const { uid } = await agent.untilOrdered();
    await agent.report({ uid, state: 'RUNNING' });
    await agent.append(uid, 'stdout', Buffer.from('one\n'));
    const first = await it.readLogs(admin, id, { after: 0, waitMs: 5_000 });
    expect(first.complete).toBe(false);
    const waiting = it.readLogs(admin, id, { after: first.next, waitMs: 20_000 });
    await agent.append(uid, 'stdout', Buffer.from('one\n'), 0);
    await agent.append(uid, 'stdout', Buffer.from('two\n'));
    expect((await waiting).records.map(({ text }) => text).join('')).toBe('two\n');
  });
}

export function interrupting(subject: () => Subject): void {
  test('a cancel reaches the agent as a stop order', async () => {
    const { it, admin, made, submitOne } = subject();
    const agent = new TestAgent(it, await it.join(made.joinSecret, machine('m1')));
    const id = await submitOne({ graceMs: 1234 });
    const { uid } = await agent.untilOrdered();
    await agent.report({ uid, state: 'RUNNING' });
    await it.cancelJob(admin, id);
    expect(await agent.untilStop()).toEqual({ uid, cause: 'cancelled', graceMs: 1234 });
    await agent.end({
      uid,
      state: 'ENDED',
      cause: 'cancelled',
      stdoutBytes: 0,
      stderrBytes: 0,
    });
    expect(await it.getJob(admin, id)).toMatchObject({ state: 'CANCELLED' });
  });

  test('a tunnel is asked for at the worker that runs the task', async () => {
    const { it, admin, made, submitOne } = subject();
    const joined = await it.join(made.joinSecret, machine('m1'));
    const agent = new TestAgent(it, joined);
    await submitOne();
    const { uid, task } = await agent.untilOrdered();
    await agent.report({ uid, state: 'RUNNING' });
    const gatewayUrl = 'wss://gateway.example/v1/tunnel?α=1';
    await it.registerGateway(gatewayUrl, 30_000);
    const ticket = await it.openTunnel(admin, task, gatewayUrl);
    expect(ticket).toMatchObject({ worker: joined.worker, attempt: uid });
    expect(ticket.ticketHash).not.toBe('');
    expect(await agent.untilTunnel()).toMatchObject({ gatewayUrl });
  });
}

export function machine(id: string): Parameters<Coordinator['join']>[1] {
  return {
    name: `host ${id} ñ`,
    machine: id,
    bootId: 'boot-1',
    address: '127.0.0.1',
    network: 'lab',
    agentVersion: '0.1.0',
    capabilities: ['process'],
    attributes: { zone: 'a', größe: '大' },
    resources: {
      cpuMillis: 64_000,
      memoryBytes: 2 ** 40,
      devices: [{ index: 0, kind: 'gpu', model: 'NVIDIA H100', memoryBytes: 80 * 2 ** 30 }],
      portRange: [20_000, 29_999],
    },
  };
}

async function allLogs(
  coordinator: Coordinator,
  who: Principal,
  job: string,
): Promise<Record<'stdout' | 'stderr', Buffer>> {
  const parts: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] };
  for (let after = 0; ;) {
    const page = await coordinator.readLogs(who, job, { after, waitMs: 5_000 });
    for (const { stream, text, base64 } of page.records) {
      parts[stream as OutputStream].push(
        base64 === undefined ? Buffer.from(text ?? '') : Buffer.from(base64, 'base64'),
      );
    }
    if (page.complete) break;
    after = page.next;
  }
  return { stdout: Buffer.concat(parts.stdout), stderr: Buffer.concat(parts.stderr) };
}
